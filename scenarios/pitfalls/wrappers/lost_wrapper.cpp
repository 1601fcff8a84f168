#include "scenarios/pitfalls/wrappers/lost_wrapper.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/handed_out.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/wrappers/bypass.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::Field;
using diagnose::Kind;
using diagnose::Wrap;

namespace {

// model for model(x) and model.encode(x), also where it is self.model.
Ref object_of(const CallRef& call) {
  Ref object{call.module, call.call->function};
  const auto is_field = [](Ref each) {
    return each.kind() == Kind::attribute && each.child(Field::object).text() == "self";
  };
  if (object.kind() == Kind::attribute && !is_field(object)) object = object.child(Field::object);
  return object.kind() == Kind::identifier || is_field(object) ? object : Ref{};
}

bool has_word(std::string_view name, std::initializer_list<std::string_view> words) {
  const std::string plain = facts::lowered(name);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return facts::contains(plain, word); });
}

// restore(model.module, states): a function that gives back the model it changes. One of this
// program is asked; of others the name is.
bool gives_back_model(const Program& program, const CallRef& call) {
  if (program.class_of_call(call)) return false;
  if (const auto function = program.callee(call)) {
    const auto& returns = function.function->returns;
    const auto& parameters = function.function->parameters;
    return !returns.empty() && std::all_of(returns.begin(), returns.end(), [&](auto node) {
      const Ref value{function.module, node};
      return value.kind() == Kind::identifier &&
             std::any_of(parameters.begin(), parameters.end(), [&](const auto& parameter) {
               return parameter.name == value.text() &&
                      program.is_wrapped(value, diagnose::Wrapper::ddp);
             });
    });
  }
  return has_word(call.call->name, {"load", "restore", "resume", "init", "freeze", "convert",
                                    "compile", "deepcopy", "pretrain", "replace"}) &&
         !has_word(call.call->name, {"wrap", "parallel", "distribut", "ddp", "prepare", "engine"});
}

// model.module for the value of model = model.module and model = load(model.module, states).
Ref inner_in(const Program& program, Ref value) {
  if (value.kind() == Kind::attribute) return value;
  const CallRef call = program.as_call(value);
  if (!call || call.call->api == diagnose::Api::ddp || !call.positional(0)) return {};
  return gives_back_model(program, call) ? call.positional(0) : Ref{};
}

// Something gives the name a wrapper again, below the line.
bool is_wrapped_again(const Program& program, Ref line, std::string_view name) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return (wrap.module.text() == name || program.assigned_name(wrap.call.ref()) == name) &&
           program.runs_before(line, wrap.call.ref());
  });
}

// The name is given another value between the line and the use, in the function of the use.
bool changes_below(const Program& program, const Def& line, Ref object) {
  const bool is_field = object.kind() == Kind::attribute;
  const Ref name = is_field ? object.child(Field::attribute) : object;
  const auto& module = *object.module;
  const auto& defs = module.defs_of(name.text(), is_field);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const Def& def = module.defs()[index];
    return module.text(def.target) == object.text() && def.target != line.target &&
           def.target < object.node &&
           program.runs_before(object.with(line.target), object.with(def.target)) &&
           !facts::exclusive(object.with(line.target), object.with(def.target));
  });
}

// if distributed: ... model.module, of a model that another file makes.
bool is_taken_for_ddp(const Program& program, Ref inner) {
  const Ref object = inner.child(Field::object);
  return inner.kind() == Kind::attribute && inner.child(Field::attribute).text() == "module" &&
         program.uses(diagnose::Api::init_process_group) &&
         !program.is_wrapped(object, diagnose::Wrapper::data_parallel) &&
         program.under(inner, [&](Ref condition, bool holds) {
           return holds && program.is_distributed_flag(condition);
         });
}

}  // namespace

Ref inner_given_to(const Program& program, Ref object, Ref use) {
  const bool is_field = object.kind() == Kind::attribute;
  const Ref name = is_field ? object.child(Field::attribute) : object;
  const auto& module = *object.module;
  const auto& defs = module.defs_of(name.text(), is_field);
  constexpr std::size_t kMaxDefs = 64;  // a name of more values is of a generated file
  if (defs.size() > kMaxDefs) return {};
  for (const std::uint32_t index : defs) {
    const Def& def = module.defs()[index];
    const Ref value = object.with(def.value);
    if (def.kind != diagnose::DefKind::assign || def.element >= 0 || !value ||
        module.text(def.target) != object.text() ||
        program.enclosing_class(value) != program.enclosing_class(object))
      continue;
    const Ref inner = inner_in(program, value);
    if (!inner ||
        (wrapper_of_inner(program, inner) == nullptr && !is_taken_for_ddp(program, inner)) ||
        inner.child(Field::object).text() != object.text() ||
        (!is_field && program.enclosing_function(value) != program.enclosing_function(object)) ||
        !only_runs_before(program, value, use) || is_wrapped_again(program, value, object.text()) ||
        changes_below(program, def, object) || facts::only_without_distribution(program, value) ||
        program.guarded_by_rank(value) != diagnose::RankTest::none)
      continue;
    return inner;
  }
  return {};
}

bool has_lost_wrapper(const Program& program, const CallRef& call) {
  const Ref object = object_of(call);
  return object && inner_given_to(program, object, call.ref());
}

std::vector<CallRef> wrappers_of_loop_items(const Program& program) {
  std::vector<CallRef> out;
  for (const Wrap& wrap : program.wraps()) {
    const Ref made = diagnose::made_at(program, wrap.call).ref();
    const Ref wrapped = diagnose::seen_in(program, wrap.module, program.enclosing_function(made));
    const Ref loop = program.innermost_loop(made);
    if (wrap.kind != diagnose::Wrapper::ddp || loop.kind() != Kind::for_statement) continue;
    const Ref item = loop.child(Field::left);
    const auto& tree = made.module->tree();
    const Ref line = made.with(tree[made.node].parent);
    if (item.kind() != Kind::identifier || item.text() != wrapped.text() ||
        line.kind() != Kind::assignment || line.child(Field::left).text() != item.text())
      continue;
    bool is_used = false;
    for (diagnose::NodeId id = tree[line.node].last; id < tree[loop.node].last; ++id)
      is_used = is_used || (tree[id].kind == Kind::identifier && tree.text(id) == item.text() &&
                            !facts::exclusive(made.with(id), made));
    // The last one stays under that name behind the loop.
    if (const auto around = program.enclosing_function(made))
      for (diagnose::NodeId id = tree[loop.node].last; id < tree[around.function->node].last; ++id)
        is_used = is_used || (tree[id].kind == Kind::identifier && tree.text(id) == item.text());
    if (!is_used) out.push_back(wrap.call);
  }
  return out;
}

namespace {

// teacher = DDP(teacher) beside optimizer = SGD(student.parameters()): nothing trains the teacher,
// and what its wrapper would reduce is nothing.
bool others_are_trained(const Program& program, diagnose::FunctionRef function, Ref model) {
  VariableNames outside{"self." + std::string(model.text())};
  for (const CallRef& site : program.call_sites(function))
    if (const Ref given = facts::argument_for(site, function, model.text()))
      outside.merge(variables_in(given));
  bool any = false;
  for (const CallRef& optimizer : program.calls(diagnose::Api::optimizer)) {
    if (program.enclosing_function(optimizer.ref()) != function) {
      if (meet(outside, variables_in(optimizer.ref().child(Field::arguments)))) return false;
      continue;
    }
    const auto given = variables_in(optimizer.ref().child(Field::arguments));
    if (given.contains(std::string(model.text())) ||
        !facts::contains(optimizer.ref().text(), ".parameters("))
      return false;
    any = true;
  }
  return any;
}

// net = DDP(net).module
bool keeps_inside_alone(Ref made) {
  const auto& tree = made.module->tree();
  const Ref inside = made.with(tree[made.node].parent);
  return inside.kind() == Kind::attribute && inside.child(Field::attribute).text() == "module" &&
         made.with(tree[inside.node].parent).kind() == Kind::assignment;
}

}  // namespace

std::vector<CallRef> wrappers_dropped(const Program& program) {
  std::vector<CallRef> out;
  for (const Wrap& wrap : program.wraps()) {
    const Ref made = wrap.call.ref();
    const auto& tree = made.module->tree();
    const Ref line = made.with(tree[made.node].parent);
    if (wrap.kind != diagnose::Wrapper::ddp || wrap.call.call->api != diagnose::Api::ddp) continue;
    if (line.kind() == Kind::expression_statement || keeps_inside_alone(made))
      out.push_back(wrap.call);
    const auto function = program.enclosing_function(made);
    const Ref name = line.kind() == Kind::assignment ? line.child(Field::left) : Ref{};
    if (!function || name.kind() != Kind::identifier || program.innermost_loop(made) ||
        name.text() != wrap.module.text() || !facts::is_parameter(program, name))
      continue;
    const diagnose::NodeId end = tree[function.function->node].last;
    bool is_used = holds_any(tree.text(function.function->node), {"global ", "nonlocal "});
    for (diagnose::NodeId id = tree[line.node].last; id < end; ++id)
      is_used = is_used || (tree[id].kind == Kind::identifier && tree.text(id) == name.text());
    if (!is_used && !others_are_trained(program, function, name)) out.push_back(wrap.call);
  }
  return out;
}

const Wrap* wrapper_left_out_of(const Program& program, const CallRef& call) {
  const Ref object = object_of(call);
  const auto sources = object ? program.sources(object) : std::vector<diagnose::Source>{};
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::value) return nullptr;
  const CallRef made = program.as_call(sources.front().ref);
  if (!made || made.call->api != diagnose::Api::none || program.callee(made) ||
      program.class_of_call(made) ||
      has_word(made.call->name,
               {"ema", "average", "copy", "teacher", "loss", "criteri", "metric"}) ||
      has_word(object.text(), {"loss", "criteri", "metric"}))
    return nullptr;
  const Wrap* wrap = nullptr;
  const auto& tree = made.module->tree();
  const Ref arguments = made.ref().child(Field::arguments);
  for (auto at = tree[arguments.node].first_child; at != diagnose::kNoNode;
       at = tree[at].next_sibling) {
    Ref given = arguments.with(at);
    if (given.kind() == Kind::keyword_argument) given = given.child(Field::value);
    if (const Wrap* inner = wrapper_of_inner(program, given))
      wrap = inner;
    else if (program.is_wrapped(given, diagnose::Wrapper::ddp))
      return nullptr;
  }
  if (wrap == nullptr || facts::only_without_distribution(program, made.ref())) return nullptr;
  // step = partial(run, model): what is out of sight may train through the wrapper.
  const auto given = calls_given(program, [&](Ref value) {
    return program.wrap_of(value, diagnose::Wrapper::ddp) == wrap &&
           wrapper_of_inner(program, value) == nullptr;
  });
  return given.empty() ? wrap : nullptr;
}

}  // namespace bench::pitfalls
