#include "scenarios/pitfalls/frameworks/prepared.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;

bool is_of_accelerator(const Program& program, const CallRef& call) {
  return program.is_accelerator(call.receiver());
}

bool has_call_of_accelerator(const Program& program, std::string_view method) {
  const auto calls = program.calls_named(method);
  return std::any_of(calls.begin(), calls.end(),
                     [&](const CallRef& call) { return program.is_accelerator(call.receiver()); });
}

bool is_handed_accelerator(const Program& program) {
  return has_call_of_accelerator(program, "prepare") &&
         has_call_of_accelerator(program, "backward") && !program.has_ddp();
}

namespace {

// The function has a variable or parameter of that name.
bool is_bound_in(diagnose::FunctionRef function, Ref name) {
  for (const auto& parameter : function.function->parameters)
    if (parameter.name == name.text()) return true;
  for (const std::uint32_t index : function.module->defs_of(name.text(), false))
    if (function.module->tree().contains(function.function->body,
                                         function.module->defs()[index].target))
      return true;
  return false;
}

// A prepare() call, and the name under which its result is known where it is made.
struct Preparation {
  CallRef prepare;
  Ref name;
};

// What prepare() gives back for `element`: its only argument, or that of the same place.
bool gives_back(const CallRef& prepare, int element) {
  if (element < 0) return prepared_by(prepare, 0) && !prepared_by(prepare, 1);
  return static_cast<bool>(prepared_by(prepare, static_cast<std::size_t>(element)));
}

// The line stands above the call in its method, or runs before it: in __init__, which calls
// self.prepare() at its end.
bool is_over_by(const Program& program, Ref target, const CallRef& prepare,
                diagnose::FunctionRef maker) {
  if (program.enclosing_function(target) == maker) return target.node < prepare.call->node;
  return only_runs_before(program, target, prepare.ref());
}

// self.model is prepared in __init__ and nowhere given another value: other methods find it so. Or
// the order of the calls says that it is prepared by then.
bool is_prepared_by_then(const Program& program, const CallRef& prepare, Ref object) {
  const auto maker = program.enclosing_function(prepare.ref());
  const auto here = program.enclosing_function(object);
  const auto owner = program.enclosing_class(prepare.ref());
  if (!maker || !here || !owner || !(owner == program.enclosing_class(object))) return false;
  for (const diagnose::Def& def : object.module->defs())
    if (def.is_attribute && object.module->text(def.target) == object.text() &&
        !is_over_by(program, object.with(def.target), prepare, maker))
      return false;
  if (maker.function->name != "__init__") return only_runs_before(program, prepare.ref(), object);
  const auto reached = program.reached({maker.module, maker.function->body});
  return std::find(reached.begin(), reached.end(), here) == reached.end();
}

// model, optimizer = accelerator.prepare(model, optimizer), above the use of the same name.
Preparation preparation_of_name(const Program& program, Ref object) {
  const bool is_attribute = object.kind() == Kind::attribute;
  const Ref name = is_attribute ? object.child(Field::attribute) : object;
  for (const std::uint32_t index : object.module->defs_of(name.text(), is_attribute)) {
    const diagnose::Def& def = object.module->defs()[index];
    const CallRef prepare =
        def.kind == diagnose::DefKind::assign ? program.as_call(object.with(def.value)) : CallRef{};
    if (!prepare || !diagnose::is_prepare(prepare.call->name) ||
        !gives_back(prepare, def.element) || object.module->text(def.target) != object.text())
      continue;
    const Ref node = prepare.ref();
    const auto here = program.enclosing_function(object);
    const bool of_file =
        !program.enclosing_function(node) && here && !is_attribute && !is_bound_in(here, object);
    if (of_file || (is_attribute && object.text().starts_with("self.") &&
                    is_prepared_by_then(program, prepare, object)))
      return {prepare, object};
    if (program.enclosing_function(node) == here && program.runs_before(node, object))
      return {prepare, object};
  }
  return {};
}

// model = train(...), where train() prepares the model that it returns.
constexpr int kReturns = 3;
Preparation preparation_in(const Program& program, const CallRef& made, int depth = 0) {
  const auto function = program.callee(made);
  if (!function || function.function->returns.size() != 1) return {};
  const Ref value{function.module, function.function->returns.front()};
  // return run(accelerator, model), which hands its parameter back
  if (const CallRef inner = program.as_call(value))
    return depth < kReturns ? preparation_in(program, inner, depth + 1) : Preparation{};
  return value.kind() == Kind::identifier
             ? preparation_of_name(program, diagnose::seen_above(program, value))
             : Preparation{};
}

// The name stands in a function that calls the one that holds the object.
bool is_of_caller(const Program& program, Ref name, Ref object) {
  const auto callee = program.enclosing_function(object);
  if (!callee) return false;
  const auto& sites = program.call_sites(callee);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return program.enclosing_function(site.ref()) == program.enclosing_function(name);
  });
}

// model, loader = build(): of the names that the object has where it is made.
Preparation preparation_in_maker(const Program& program, Ref object) {
  const auto here = program.enclosing_function(object);
  for (const Ref name : program.names_behind(object)) {
    const auto there = program.enclosing_function(name);
    if (!there || there == here || is_of_caller(program, name, object)) continue;
    if (const Preparation found = preparation_of_name(program, name); found.prepare) return found;
  }
  return {};
}

// The same, also below trainer.model = model, which hands it on under another name.
Preparation preparation_of(const Program& program, Ref object) {
  if (const Preparation found = preparation_of_name(program, object); found.prepare) return found;
  if (const Preparation made = preparation_in_maker(program, object); made.prepare) return made;
  const diagnose::Def* last = last_value_above(object);
  if (last == nullptr || last->kind != diagnose::DefKind::assign || last->element >= 0) return {};
  const Ref value = object.with(last->value);
  if (const CallRef made = program.as_call(value)) return preparation_in(program, made);
  if (!diagnose::stands_for_object(value)) return {};
  return runs_wherever(program, value, object) ? preparation_of_name(program, value)
                                               : Preparation{};
}

// Optimizers, loaders and schedulers come back from prepare() too, and have no prefix; nothing
// takes a wrapper off them.
bool is_used_as_module(const Program& program, Ref object) {
  if (facts::contains(facts::lowered(object.text()), "optim")) return false;
  for (const CallRef& unwrap : program.calls_named("unwrap_model"))
    if (unwrap.argument(0, "model").text() == object.text()) return true;
  for (const char* method : {"eval", "train", "parameters"})
    for (const CallRef& call : program.calls_named(method))
      if (call.receiver() && call.receiver().text() == object.text()) return true;
  return false;
}

constexpr int kHandsOn = 4;

// A function, and the parameter under which what calls it hands the object on.
struct HandedOn {
  diagnose::FunctionRef to;
  std::string_view as;
};

// self.model = model in __init__, and nothing else in the class gives it a value.
HandedOn kept_from_maker(const Program& program, Ref object) {
  const diagnose::ClassRef owner = program.enclosing_class(object);
  if (!owner || object.child(Field::object).text() != "self") return {};
  const diagnose::FunctionRef maker = program.method(owner, "__init__");
  if (!maker || maker.module != object.module) return {};
  std::string_view kept;
  for (const std::uint32_t index :
       object.module->defs_of(object.child(Field::attribute).text(), true)) {
    const diagnose::Def& def = object.module->defs()[index];
    const Ref target = object.with(def.target);
    if (target.text() != object.text() || !(program.enclosing_class(target) == owner)) continue;
    const Ref value = object.with(def.value);
    if (!kept.empty() || program.enclosing_function(target) != maker || def.element >= 0 ||
        value.kind() != Kind::identifier)
      return {};
    kept = value.text();
  }
  const auto& parameters = maker.function->parameters;
  const bool is_handed =
      std::any_of(parameters.begin(), parameters.end(),
                  [&](const diagnose::Parameter& each) { return each.name == kept; });
  return is_handed ? HandedOn{maker, kept} : HandedOn{};
}

HandedOn handed_on_as(const Program& program, Ref object) {
  if (object.kind() == Kind::attribute) return kept_from_maker(program, object);
  const diagnose::Def* last =
      object.kind() == Kind::identifier ? last_value_above(object) : nullptr;
  if (last == nullptr || last->kind != diagnose::DefKind::parameter) return {};
  return {program.enclosing_function(object), object.text()};
}

// Of the callers that hand the object on, which have to have it prepared.
enum class Callers : std::uint8_t { one, all };

// The object is prepared here, or in callers, which hand it on.
Preparation preparation_behind(const Program& program, Ref object, Callers callers, int depth = 0) {
  if (const Preparation here = preparation_of(program, object); here.prepare) return here;
  const HandedOn handed = handed_on_as(program, object);
  if (!handed.to || depth >= kHandsOn) return {};
  Preparation found;
  for (const CallRef& site : program.call_sites(handed.to)) {
    const Ref argument = facts::argument_for(site, handed.to, handed.as);
    const bool is_name = diagnose::stands_for_object(argument);
    const Preparation there = is_name && argument != object
                                  ? preparation_behind(program, argument, callers, depth + 1)
                                  : Preparation{};
    if (there.prepare) found = there;
    if (there.prepare && callers == Callers::one) return found;
    if (!there.prepare && callers == Callers::all) return {};
  }
  return found;
}

// model.module, and not model.modules().
bool takes_module(const Program& program) {
  constexpr std::string_view kWord = ".module";
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [&](const diagnose::Module* module) {
    if (!module->tree().holds(kWord)) return false;
    const std::string_view text = module->tree().source();
    for (std::size_t at = text.find(kWord); at != std::string_view::npos;
         at = text.find(kWord, at + 1)) {
      const char next = at + kWord.size() < text.size() ? text[at + kWord.size()] : ' ';
      // model.module.encode(x) goes below the wrapper in one place; model.module alone takes it
      // off.
      if (next != '_' && next != '.' && next != '(' &&
          std::isalnum(static_cast<unsigned char>(next)) == 0)
        return true;
    }
    return false;
  });
}

// A program that reaches into the wrapper, or takes it off, knows of it.
bool prepare_wraps_in_ddp(const Program& program) {
  return program.uses(Api::accelerator) && !program.has_another_engine() &&
         !takes_module(program) && !program.mentions("extract_model");
}

// model = accelerator.unwrap_model(model): from there on the name is the bare model's.
bool is_unwrapped_into(const Program& program, std::string_view name) {
  const auto unwraps = program.calls_named("unwrap_model");
  return std::any_of(unwraps.begin(), unwraps.end(), [&](const CallRef& unwrap) {
    return program.assigned_name(unwrap.ref()) == name;
  });
}

}  // namespace

bool makes_accelerator(const Program& program) {
  const auto made = program.calls(Api::accelerator);
  return std::any_of(made.begin(), made.end(), [&](const CallRef& call) {
    return call.module == &program.root() || !facts::is_never_made(program, call.ref());
  });
}

// def to_gpus(net): return DataParallel(net) of a file that other scripts use as well, and that
// this one does not call.
bool wraps_by_itself(const Program& program) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const diagnose::Wrap& wrap) {
    return wrap.call.module == &program.root() || facts::is_reachable(program, wrap.call.ref());
  });
}

bool accelerate_wraps(const Program& program) {
  if (!program.uses(Api::accelerator) || program.has_another_engine() || wraps_by_itself(program))
    return false;
  if (program.lightning_distributes() || program.imports("horovod")) return false;
  if (has_call_of_accelerator(program, "prepare_model")) return true;
  for (const CallRef& prepare : program.calls_named("prepare")) {
    // class Trainer of a file that a script of inference imports, and makes no object of.
    if (prepare.module != &program.root() && facts::is_never_made(program, prepare.ref())) continue;
    for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
      if (is_used_as_module(program, argument)) return true;
  }
  return false;
}

namespace {

// if train_encoder: unet, encoder = prepare(unet, encoder), else: unet = prepare(unet): both ways
// lead through a prepare() that gives the name back.
bool is_prepared_both_ways(const Program& program, const CallRef& prepare, Ref name) {
  const auto here = program.guards(prepare.ref());
  if (here.empty() || (here.size() > 1 && !runs_wherever(program, here.front().condition, name)))
    return false;
  const auto prepares = program.calls_named("prepare");
  return std::any_of(prepares.begin(), prepares.end(), [&](const CallRef& other) {
    const auto there = program.guards(other.ref());
    if (other.module != prepare.module || there.empty() ||
        there.front().condition != here.front().condition ||
        there.front().holds == here.front().holds)
      return false;
    for (std::size_t i = 0; const Ref argument = prepared_by(other, i); ++i)
      if (argument.text() == name.text()) return true;
    return false;
  });
}

// unet = PeftModel.from_pretrained(unet, path) above prepare(unet): base and adapter are frozen
// unless is_trainable is asked for.
bool is_frozen_adapter(const Program& program, const CallRef& prepare, Ref name) {
  Ref given;
  for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
    if (argument.text() == name.text()) given = argument;
  if (!given) return false;
  const diagnose::Def* last = last_value_above(given, [&](const diagnose::Def& def) {
    return def.value == diagnose::kNoNode || !given.module->tree().contains(def.value, given.node);
  });
  if (last == nullptr || last->kind != diagnose::DefKind::assign || last->element >= 0)
    return false;
  const CallRef made = program.as_call(given.with(last->value));
  const Ref trains = made ? made.keyword("is_trainable") : Ref{};
  if (!made || made.call->name != "from_pretrained" || made.has_splat() ||
      !facts::contains(made.ref().with(made.call->function).text(), "PeftModel") ||
      (trains && !program.is_literal_false(trains)))
    return false;
  for (const CallRef& call : program.calls_named("requires_grad_"))
    if (!program.is_literal_false(call.positional(0))) return false;
  const auto& switches = program.attribute_defs("requires_grad");
  return std::all_of(switches.begin(), switches.end(), [&](const auto& each) {
    return program.is_literal_false({each.module, each.def->value});
  });
}

CallRef wrapping_preparation(const Program& program, Ref object) {
  if (is_unwrapped_into(program, object.text())) return {};
  const auto [prepare, name] = preparation_behind(program, object, Callers::one);
  if (!prepare || is_unwrapped_into(program, name.text()) ||
      (prepare.call->name != "prepare_model" && !is_used_as_module(program, object) &&
       !is_used_as_module(program, name)))
    return {};
  // Accelerate leaves a model alone that has nothing to train.
  if (is_frozen(program, object) || is_frozen(program, name) ||
      is_frozen_adapter(program, prepare, name))
    return {};
  return runs_wherever(program, prepare.ref(), object) ||
                 is_prepared_both_ways(program, prepare, name)
             ? prepare
             : CallRef{};
}

// bare = accelerator.unwrap_model(model), also as what a function is given; empty for other values.
CallRef unwrapping_of(const Program& program, Ref base) {
  for (const diagnose::Source& source : program.sources(base)) {
    const CallRef call = program.as_call(source.ref);
    if (call && call.call->name == "unwrap_model" && call.positional(0)) return call;
  }
  return {};
}

}  // namespace

CallRef preparation_of_wrapper(const Program& program, Ref object) {
  return prepare_wraps_in_ddp(program) ? wrapping_preparation(program, object) : CallRef{};
}

CallRef preparation_gone_below(const Program& program, Ref object) {
  return program.uses(Api::accelerator) && !program.has_another_engine()
             ? wrapping_preparation(program, object)
             : CallRef{};
}

CallRef preparation_of_model(const Program& program, Ref object) {
  // extract_model is unwrap_model's kin.
  if (program.mentions("unwrap") || !prepare_wraps_in_ddp(program)) return {};
  const auto [prepare, name] = preparation_behind(program, object, Callers::one);
  return prepare && (is_used_as_module(program, object) || is_used_as_module(program, name))
             ? prepare
             : CallRef{};
}

CallRef preparation_of_loader(const Program& program, Ref loader) {
  const bool is_named =
      loader && (loader.kind() == Kind::identifier ||
                 loader.text() == "self." + std::string(loader.child(Field::attribute).text()));
  return is_named ? preparation_behind(program, loader, Callers::all).prepare : CallRef{};
}

CallRef unwrapping_in(const Program& program, Ref receiver) {
  for (Ref at = receiver; at;) {
    const CallRef call = program.as_call(at);
    if (call) return call.call->name == "unwrap_model" && call.positional(0) ? call : CallRef{};
    if (at.kind() == Kind::identifier) return unwrapping_of(program, at);
    if (at.kind() != Kind::attribute) return {};
    if (at.child(Field::object).text() == "self") return unwrapping_of(program, at);
    at = at.child(Field::object);
  }
  return {};
}

}  // namespace bench::pitfalls
