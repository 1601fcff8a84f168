#include "scenarios/pitfalls/frameworks/unwrapped_training.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;

namespace {

// x for typing.cast(Model, x)
Ref without_cast(const Program& program, Ref object) {
  const CallRef call = program.as_call(object);
  return call && call.call->name == "cast" && call.positional(1) ? call.positional(1) : object;
}

// What is unwrapped by accelerator.unwrap_model(x), and by a function of the program that returns
// that for its parameter.
Ref unwrapped_by(const Program& program, const CallRef& call) {
  if (!call) return {};
  if (call.call->name == "unwrap_model") return call.positional(0);
  const FunctionRef helper = program.callee(call);
  if (!helper || helper.function->owner_class != diagnose::kNoNode ||
      helper.function->returns.size() != 1)
    return {};
  const CallRef unwrap = program.as_call({helper.module, helper.function->returns.front()});
  if (!unwrap || unwrap.call->name != "unwrap_model") return {};
  const auto& parameters = helper.function->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == unwrap.positional(0).text())
      return call.argument(i, parameters[i].name);
  return {};
}

// The lines that give the variable a value in the function or the class it stands in; none where
// one of them is no plain assignment.
std::vector<Ref> plain_values(const Program& program, Ref name) {
  std::vector<Ref> out;
  for (const diagnose::Def* def : values_of(program, name)) {
    if (!shares_variable(program, name, name.with(def->target))) continue;
    if (def->kind != diagnose::DefKind::assign || def->element >= 0) return {};
    out.push_back(name.with(def->value));
  }
  return out;
}

// What every line that gives the variable a value takes out of its wrapper: bare =
// accelerator.unwrap_model(model), once above the loop and again where it is saved.
Ref unwrapped_into(const Program& program, Ref name) {
  Ref model;
  for (const Ref value : plain_values(program, name)) {
    const Ref inner = unwrapped_by(program, program.as_call(without_cast(program, value)));
    if (!inner || (model && inner.text() != model.text())) return {};
    model = inner;
  }
  return model;
}

// The name that the only caller has for a parameter.
Ref handed_down(const Program& program, Ref name) {
  if (!facts::is_parameter(program, name)) return name;
  const auto& sites = program.call_sites(program.enclosing_function(name));
  const Ref seen = sites.size() == 1 ? diagnose::seen_in(program, name,
                                                         program.enclosing_function(sites[0].ref()))
                                     : Ref{};
  return seen.kind() == Kind::identifier ? seen : name;
}

// model for accelerator.unwrap_model(model).encode(x), bare.encode(x) and bare(x).
Ref unwrapped_for(const Program& program, const CallRef& call) {
  Ref object{call.module, call.call->function};
  if (const Ref receiver = call.receiver()) object = receiver;
  object = without_cast(program, object);
  // model.module(x), model.module.loss(x)
  for (const Ref each : {Ref{call.module, call.call->function}, object})
    if (each.kind() == Kind::attribute && each.child(Field::attribute).text() == "module")
      return each.child(Field::object);
  return is_variable(object) ? unwrapped_into(program, handed_down(program, object))
                             : unwrapped_by(program, program.as_call(object));
}

// model.module(x), model.module.loss(x)
bool is_below_wrapper(const CallRef& call, Ref model) {
  return facts::contains(Ref{call.module, call.call->function}.text(),
                         std::string(model.text()) + ".module");
}

// The call stands in another function than prepare(), which has a variable of its own under the
// name; what is handed to it there is seen where it is called.
bool is_of_another_variable(const Program& program, const CallRef& call, const CallRef& prepare,
                            std::string_view name) {
  const FunctionRef here = program.enclosing_function(call.ref());
  const FunctionRef maker = program.enclosing_function(prepare.ref());
  if (!here || !maker || here == maker ||
      maker.module->tree().contains(maker.function->node, here.function->node))
    return false;
  const auto& defs = here.module->defs_of(name, false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    return here.module->tree().contains(here.function->node, here.module->defs()[index].target);
  });
}

bool only_looks(const Program& program, const CallRef& call) {
  constexpr std::string_view kLooks[] = {
      "unwrap_model", "accumulate", "len",        "print", "add_graph",  "hasattr",
      "watch",        "summary",    "isinstance", "type",  "save_model", "get_state_dict"};
  return call.call->api == diagnose::Api::torch_save || unwrapped_by(program, call) ||
         std::find(std::begin(kLooks), std::end(kLooks), call.call->name) != std::end(kLooks);
}

bool trains_parameter(const Program& program, FunctionRef function, std::string_view name,
                      int depth);

// The call runs the model of that name for training, or hands it to something that may do so.
bool may_train_in(const Program& program, const CallRef& call, std::string_view name, int depth) {
  constexpr int kDeepest = 3;
  const Ref function{call.module, call.call->function};
  if (function.text() == name) return !program.under_no_grad(call.ref());
  if (only_looks(program, call)) return false;
  const FunctionRef helper = depth < kDeepest ? program.callee(call) : FunctionRef{};
  const bool is_seen = helper && helper.function->name != "__init__" && !call.has_splat();
  if (is_seen)
    for (const diagnose::Parameter& each : helper.function->parameters) {
      const Ref argument = facts::argument_for(call, helper, each.name);
      if (argument.text() == name && trains_parameter(program, helper, each.name, depth + 1))
        return true;
    }
  for (const Ref argument : facts::arguments_of(call))
    if (!is_seen && argument.text() == name) return true;
  return false;
}

// net = model, [model, head]: the function may go on under another name. `return model` does not.
bool is_kept_under_another_name(FunctionRef function, std::string_view name) {
  const auto& tree = function.module->tree();
  const auto body = function.function->body;
  for (diagnose::NodeId id = body; id < tree[body].last; ++id) {
    if (tree[id].kind != Kind::identifier || tree.text(id) != name) continue;
    const auto parent = tree[id].parent;
    switch (tree[parent].kind) {
      case Kind::assignment:
        if (tree[id].field == Field::right) return true;
        break;
      case Kind::list:
      case Kind::tuple:
      case Kind::pair:
      case Kind::conditional:
        if (tree[tree[parent].parent].kind != Kind::return_statement &&
            tree[parent].field != Field::left)
          return true;
        break;
      default:
        break;
    }
  }
  return false;
}

bool trains_parameter(const Program& program, FunctionRef function, std::string_view name,
                      int depth) {
  if (is_kept_under_another_name(function, name)) return true;
  const auto calls = facts::calls_in({function.module, function.function->body});
  return std::any_of(calls.begin(), calls.end(),
                     [&](const CallRef& call) { return may_train_in(program, call, name, depth); });
}

// The prepared model is called for training somewhere, or handed to something that may call it.
bool may_train_through(const Program& program, const CallRef& prepare, Ref model) {
  for (const diagnose::Module* module : program.modules())
    for (const auto& each : module->calls()) {
      const CallRef call{module, &each};
      if ((each.node <= prepare.call->node && module == prepare.module) ||
          is_of_another_variable(program, call, prepare, model.text()))
        continue;
      const Ref function{module, each.function};
      const bool is_held = function.kind() == Kind::subscript || program.is_field(each.name);
      if (is_held && program.leads_to(function, model) && !program.under_no_grad(call.ref()))
        return true;
      if (!diagnose::makes_carrier(each.name) && may_train_in(program, call, model.text(), 0))
        return true;
    }
  return false;
}

// nets for nets["policy"] and nets.policy: its parameters are those of all models in it.
std::vector<Ref> with_containers(std::vector<Ref> names) {
  const std::size_t count = names.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Ref name = names[i];
    const Ref container = name.kind() == Kind::subscript   ? name.child(Field::value)
                          : name.kind() == Kind::attribute ? name.child(Field::object)
                                                           : Ref{};
    if (container && container.text() != "self") names.push_back(container);
  }
  return names;
}

// model.parameters() is asked for: an optimizer gets them, or they are clipped.
bool has_parameters_in_use(const Program& program, Ref model) {
  const auto calls = program.calls_named("parameters");
  if (calls.empty()) return false;
  const auto names = with_containers(program.names_behind(model));
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const Ref object = call.receiver();
    return object && (object.text() == model.text() ||
                      std::any_of(names.begin(), names.end(),
                                  [&](Ref name) { return program.same_variable(name, object); }));
  });
}

// model(x) below wrapped = accelerator.prepare(model): that line, where the name keeps its value.
Ref kept_beside(const Program& program, Ref name) {
  if (!is_variable(name)) return {};
  const auto& module = *name.module;
  for (const diagnose::Def& def : module.defs()) {
    const CallRef prepare =
        def.kind == diagnose::DefKind::assign ? program.as_call(name.with(def.value)) : CallRef{};
    if (!prepare || !diagnose::is_prepare(prepare.call->name) ||
        !is_of_accelerator(program, prepare) || module.text(def.target) == name.text() ||
        (def.element < 0 && prepared_by(prepare, 1)))
      continue;
    const Ref given = prepare.positional(static_cast<std::size_t>(std::max(def.element, 0)));
    const bool is_here = shares_variable(program, name, prepare.ref());
    const Ref seen =
        is_here ? name
                : diagnose::seen_in(program, name, program.enclosing_function(prepare.ref()));
    if (!seen || given.text() != seen.text() || !only_runs_before(program, prepare.ref(), name) ||
        !runs_wherever(program, prepare.ref(), seen))
      continue;
    if (!may_change_between(program, seen, prepare.ref(), seen) &&
        !may_train_through(program, prepare, name.with(def.target)) &&
        has_parameters_in_use(program, name))
      return name;
  }
  return {};
}

// The object goes into the call: Flow(model=model), Layers(pipeline.unet.processors).
bool is_given(const CallRef& made, std::string_view object) {
  const auto given = facts::arguments_of(made);
  return std::any_of(given.begin(), given.end(), [&](Ref value) { return value.text() == object; });
}

// flow.net = model: the object is given something later. self.flow = Flow(model) makes it.
bool is_filled_later(Ref object) {
  const std::string prefix = std::string(object.text()) + ".";
  std::size_t made = is_variable(object) ? 1 : 0;
  for (const diagnose::Def& def : object.module->defs()) {
    if (!def.is_attribute) continue;
    const std::string_view target = object.module->text(def.target);
    if (target.starts_with(prefix) || (target == object.text() && made-- == 0)) return true;
  }
  return false;
}

// The object was made of the model that `given` names: flow = Flow(model).
bool is_made_of(const Program& program, Ref object, Ref given, const CallRef& prepare) {
  const auto& sources = program.sources(object);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::value) return false;
  const CallRef made = program.as_call(sources.front().ref);
  return made && made.call->api == diagnose::Api::none && !program.callee(made) &&
         !made.call->path.starts_with("copy.") && !diagnose::is_prepare(made.call->name) &&
         is_given(made, given.text()) && only_runs_before(program, made.ref(), prepare.ref());
}

// layers = pipeline.unet, above prepare(layers): the attribute keeps the bare model.
bool is_name_for(Ref given, Ref object, const CallRef& prepare) {
  const auto& defs = given.module->defs_of(given.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const diagnose::Def& def = given.module->defs()[index];
    return def.kind == diagnose::DefKind::assign && def.value != diagnose::kNoNode &&
           def.target < prepare.call->node && given.module->text(def.value) == object.text();
  });
}

}  // namespace

Ref kept_from_before(const Program& program, const CallRef& call) {
  const Ref function{call.module, call.call->function};
  const Ref receiver = call.receiver();
  const bool is_name = function.kind() == Kind::identifier;
  for (const CallRef& prepare : program.calls_named("prepare")) {
    if (!is_of_accelerator(program, prepare) || prepare.module != call.module ||
        !only_runs_before(program, prepare.ref(), call.ref()) ||
        !runs_wherever(program, prepare.ref(), call.ref()))
      continue;
    for (std::size_t i = 0; const Ref given = prepared_by(prepare, i); ++i) {
      if (!is_variable(given)) continue;
      const Ref object = is_name ? function : receiver;
      const bool keeps =
          (object && is_variable(object) && object.text() != given.text() &&
           !is_filled_later(object) && is_made_of(program, object, given, prepare)) ||
          (function.kind() == Kind::attribute && !is_filled_later(function) &&
           is_name_for(given, function, prepare));
      if (keeps && !is_given(prepare, object.text()) && has_parameters_in_use(program, given) &&
          !is_frozen(program, given) && !may_train_through(program, prepare, given))
        return given;
    }
  }
  return {};
}

namespace {

// What follows the line in its block leaves the loop: it was the last round.
bool leaves_below(Ref line) {
  const auto& tree = line.module->tree();
  const auto statement = tree[line.node].parent;
  for (auto at = tree[statement].next_sibling; at != diagnose::kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::break_statement || tree[at].kind == Kind::return_statement)
      return true;
  return false;
}

// Comes by in many rounds, or in one process: if accelerator.is_main_process, if epoch % 5 == 0.
bool runs_in_rounds(const Program& program, Ref line, Ref use) {
  const auto guards = program.guards(line);
  return std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const auto& tree = guard.condition.module->tree();
    return facts::contains(guard.condition.text(), "%") ||
           program.rank_test(guard.condition) != diagnose::RankTest::none ||
           tree.contains(tree[guard.condition.node].parent, use.node);
  });
}

// model = accelerator.unwrap_model(model) above the training, or at the end of an epoch, where the
// next one trains the bare model; nothing prepares the name again.
bool is_lost_under_its_name(const Program& program, Ref object) {
  Ref lost;
  for (const diagnose::Def* def : values_of(program, object)) {
    const Ref line = object.with(def->target);
    if (!shares_variable(program, object, line) || def->kind != diagnose::DefKind::assign) continue;
    const Ref value = object.with(def->value);
    const CallRef made = program.as_call(value);
    const bool unwraps = def->element < 0 && unwrapped_by(program, made).text() == object.text();
    const Ref loop = unwraps ? program.innermost_loop(line) : Ref{};
    const auto& loops = loop ? program.loops_around(line) : std::vector<Ref>{};
    const bool shares_loop = std::any_of(loops.begin(), loops.end(), [&](Ref each) {
      return each.module == object.module && object.module->tree().contains(each.node, object.node);
    });
    if (unwraps && (shares_loop || line.node < object.node) && !leaves_below(value) &&
        program.enclosing_function(line) == program.enclosing_function(object) &&
        runs_in_rounds(program, line, object))
      lost = line;
    else if (lost)
      return false;  // it has another value by then
  }
  return static_cast<bool>(lost);
}

}  // namespace

Ref lost_by_unwrapping(const Program& program, const CallRef& call) {
  Ref object{call.module, call.call->function};
  if (object.kind() == Kind::attribute && !is_variable(object)) object = call.receiver();
  if (!object || !is_variable(object) || !is_lost_under_its_name(program, object)) return {};
  const auto prepares = program.calls_named("prepare");
  const bool is_prepared =
      std::any_of(prepares.begin(), prepares.end(), [&](const CallRef& prepare) {
        for (std::size_t i = 0; const Ref given = prepared_by(prepare, i); ++i)
          if (given.text() == object.text() && only_runs_before(program, prepare.ref(), object))
            return is_of_accelerator(program, prepare);
        return false;
      });
  return is_prepared ? object : Ref{};
}

Ref prepared_gone_round(const Program& program, const CallRef& call) {
  if (const Ref lost = lost_by_unwrapping(program, call)) return lost;
  const Ref function{call.module, call.call->function};
  std::vector<Ref> names = program.names_behind(function);
  names.insert(names.begin(), function);
  for (const Ref name : names)
    if (const Ref kept = kept_beside(program, name))
      return is_frozen(program, kept) || is_left_to_no_optimizer(program, kept) ? Ref{} : kept;
  const Ref model = unwrapped_for(program, call);
  if (!model || !diagnose::stands_for_object(model)) return {};
  const CallRef prepare = is_below_wrapper(call, model) ? preparation_gone_below(program, model)
                                                        : preparation_of_wrapper(program, model);
  if (!prepare || !is_of_accelerator(program, prepare) || !has_parameters_in_use(program, model) ||
      is_left_to_no_optimizer(program, model) || may_train_through(program, prepare, model))
    return {};
  return model;
}

}  // namespace bench::pitfalls
