#include "scenarios/pitfalls/wrappers/handed_to_training.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/bypass.hpp"
#include "scenarios/pitfalls/wrappers/lost_wrapper.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Wrap;
using diagnose::Wrapper;

Ref wrapper_above(const Program& program, Ref model) {
  if (wrapper_of_inner(program, model)) return model.child(Field::object);
  if (model.kind() != Kind::identifier) return {};
  for (const diagnose::Source& source : program.sources(model))
    if (wrapper_of_inner(program, source.ref) &&
        source.ref.child(Field::object).text() != model.text())
      return source.ref.child(Field::object);
  return {};
}

namespace {

bool is_an_optimizer(const Program& program, Ref value) {
  return program.comes_from(value, diagnose::Api::optimizer) ||
         facts::contains(facts::lowered(value.text()), "optim");
}

// train_one_epoch(...), engine.train(...) or fit(...) of a file that is not there, in a loop.
bool trains_by_name(std::string_view called) {
  const std::string name = facts::lowered(called);
  const bool trains = name == "fit" || name.starts_with("train") || name.ends_with("train") ||
                      facts::contains(name, "_train_");
  return trains && !name.ends_with("er");
}

bool trains_out_of_sight(const Program& program, const CallRef& call) {
  if (!trains_by_name(call.call->name) || program.callee(call) || program.class_of_call(call) ||
      !program.innermost_loop(call.ref()))
    return false;
  const Ref owner = call.receiver();
  if (!owner) return std::islower(static_cast<unsigned char>(call.call->name.front())) != 0;
  const auto& defs = owner.module->defs_of(owner.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    return owner.module->defs()[index].kind == diagnose::DefKind::import;
  });
}

bool is_trainer_by_name(std::string_view name) {
  return name.ends_with("Trainer") || name.ends_with("Runner") || name.ends_with("Learner");
}

// Trainer(model, ...), and trainer.train() of what it makes.
bool makes_trainer_out_of_sight(const Program& program, const CallRef& call) {
  if (!is_trainer_by_name(call.call->name) || call.call->api != diagnose::Api::none ||
      program.framework_distributes() || program.callee(call) || program.class_of_call(call))
    return false;
  const std::string_view trainer = program.assigned_name(call.ref());
  for (const std::string_view method : {"train", "fit", "run", "train_model", "start_training"})
    for (const CallRef& start : program.calls_named(method))
      if (!trainer.empty() && start.module == call.module && start.receiver() &&
          start.receiver().text() == trainer)
        return true;
  return false;
}

// ddp stands alone as an argument somewhere, is kept under another name or returned: whatever gets
// it may train through it.
bool is_handed_on(Ref wrapper, diagnose::NodeId first, diagnose::NodeId last) {
  const auto& tree = wrapper.module->tree();
  for (diagnose::NodeId at = first; at < last; ++at) {
    if (tree[at].kind != wrapper.kind() || tree.text(at) != wrapper.text()) continue;
    const auto parent = tree[at].parent;
    const Field field = tree[at].field;
    if (field == Field::name) continue;  // of an option: Trainer(model=...)
    switch (tree[parent].kind) {
      case Kind::argument_list: {
        const std::string_view call = tree.text(tree[parent].parent);
        if (!call.starts_with("print(") && !call.starts_with("len(") &&
            !facts::contains(call.substr(0, call.find('(')), "DataParallel") &&
            !call.starts_with("DDP("))
          return true;
        break;
      }
      case Kind::keyword_argument:
      case Kind::return_statement:
      case Kind::list:
      case Kind::tuple:
      case Kind::dictionary:
        return true;
      case Kind::assignment:
        if (field == Field::right) return true;
        break;
      default:
        break;
    }
  }
  return false;
}

// The same of a wrapper that keeps its name, and of one whose name is given the model inside it:
// from there on the name holds no wrapper.
bool is_handed_on(const Program& program, Ref wrapper) {
  const auto& tree = wrapper.module->tree();
  const diagnose::NodeId end = static_cast<diagnose::NodeId>(tree.size());
  const Ref line = wrapper.with(tree.ancestor(wrapper.node, Kind::assignment));
  if (line.node == diagnose::kNoNode || line.child(Field::left).text() != wrapper.text())
    return is_handed_on(wrapper, 0, end);
  const Wrap* wrap = program.wrap_of(wrapper, Wrapper::ddp);
  const Ref made = wrap->call.ref();
  return is_handed_on(wrapper, made.module == wrapper.module ? tree[made.node].last : 0, line.node);
}

// Every run that wraps and comes to the use comes by the line too: if distributed: model =
// model.module; neither one mode of several nor a branch that returns.
bool comes_by_too(const Program& program, Ref line, Ref wrap, Ref use) {
  const auto above = program.guards(wrap);
  const auto around = program.guards(use);
  const auto line_guards = program.guards(line);
  return std::all_of(line_guards.begin(), line_guards.end(), [&](const diagnose::Guard& guard) {
    const auto is_same = [&](const diagnose::Guard& other) {
      return other.holds == guard.holds && other.condition.text() == guard.condition.text();
    };
    return (guard.holds && program.is_distributed_flag(guard.condition)) ||
           std::any_of(above.begin(), above.end(), is_same) ||
           std::any_of(around.begin(), around.end(), is_same);
  });
}

// The wrapper in `model` above model = model.module, for `model` below it.
Ref wrapper_lost(const Program& program, Ref value, Ref use) {
  if (value.kind() != Kind::identifier) return {};
  const Ref inner = inner_given_to(program, value, use);
  const Wrap* wrap = inner ? wrapper_of_inner(program, inner) : nullptr;
  return wrap != nullptr && comes_by_too(program, inner, wrap->call.ref(), use)
             ? inner.child(Field::object)
             : Ref{};
}

}  // namespace

bool may_train(std::string_view name) { return trains_by_name(name) || is_trainer_by_name(name); }

Ref handed_to_training(const Program& program, const CallRef& call) {
  const bool makes_trainer = makes_trainer_out_of_sight(program, call);
  if (!makes_trainer && !trains_out_of_sight(program, call)) return {};
  Ref wrapper;
  bool optimizes = false;
  for (const Ref value : facts::arguments_of(call)) {
    if (const Ref above = wrapper_above(program, value))
      wrapper = above;
    else if (const Ref lost = wrapper_lost(program, value, call.ref()))
      wrapper = lost;
    else if (program.is_wrapped(value, Wrapper::ddp))
      return {};
    optimizes = optimizes || is_an_optimizer(program, value);
  }
  if (makes_trainer) return wrapper && !is_handed_on(program, wrapper) ? wrapper : Ref{};
  return optimizes ? wrapper : Ref{};
}

std::string what_is_handed(const CallRef& call, Ref wrapper) {
  const std::string name = "'" + std::string(wrapper.text()) + "'";
  for (const Ref value : facts::arguments_of(call))
    if (value.text() == wrapper.text())
      return name + ", which was given the model inside the wrapper";
  return "the model inside the wrapper, not " + name;
}

bool is_loss_given_bare(const Program& program, const CallRef& call, const Wrap& wrap) {
  if (!wrap.module || program.callee(call) || program.class_of_call(call)) return false;
  // compute = partial(losses, model); compute()
  const Ref function{call.module, call.call->function};
  const CallRef made = function.kind() == Kind::identifier ? program.made_by(function) : CallRef{};
  const CallRef partial = made && made.call->name == "partial" ? made : CallRef{};
  const Ref loss = partial ? partial.positional(0) : function;
  if (!loss || !says_any(diagnose::last_word(loss), {"loss"})) return false;
  const std::string_view name = program.assigned_name(wrap.call.ref());
  if (name.empty() || name == wrap.module.text() ||
      !program.runs_before(wrap.call.ref(), call.ref()))
    return false;
  const auto is_bare = [&](Ref given) {
    return program.same_variable(given, wrap.module) && !program.is_wrapped(given, Wrapper::ddp);
  };
  for (const CallRef& each : {call, partial})
    for (std::size_t i = 0; each && each.positional(i); ++i)
      if (is_bare(each.positional(i))) return true;
  return false;
}

bool may_train_elsewhere(const Program& program, const diagnose::Wrap& wrap) {
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      if (made.api != diagnose::Api::none || !says_any(made.name, {"train", "fit", "tune"}))
        continue;
      const CallRef call{module, &made};
      if (call.receiver() && program.wrap_of(call.receiver()) == &wrap) return true;
      if (program.callee(call)) continue;
      const auto given = facts::arguments_of(call);
      if (std::any_of(given.begin(), given.end(),
                      [&](Ref each) { return program.wrap_of(each) == &wrap; }))
        return true;
    }
  return false;
}

}  // namespace bench::pitfalls
