#include "scenarios/pitfalls/wrappers/hook_bypass.hpp"

#include "scenarios/pitfalls/frameworks/trainer_hooks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;

namespace {

// model.module, self.accelerator.unwrap_model(model), also as one of two choices: model of it,
// which is a plain name.
Ref taken_out_of(const Program& program, Ref value) {
  if (value.kind() == Kind::conditional)
    for (const Field branch : {Field::consequence, Field::alternative})
      if (const Ref model = taken_out_of(program, value.child(branch))) return model;
  Ref model;
  if (value.kind() == Kind::attribute && value.child(Field::attribute).text() == "module")
    model = value.child(Field::object);
  const CallRef unwrap = program.as_call(value);
  if (unwrap && (unwrap.call->name == "unwrap_model" || unwrap.call->name == "unwrap"))
    model = unwrap.positional(0);
  return model.kind() == Kind::identifier ? model : Ref{};
}

// The same of a name that the function gives nothing else: inner = model.module.
Ref taken_into(const Program& program, Ref name) {
  Ref model;
  for (const std::uint32_t index : name.module->defs_of(name.text(), false)) {
    const diagnose::Def& def = name.module->defs()[index];
    if (name.module->function_of(def.target) != name.module->function_of(name.node)) continue;
    model = def.kind == diagnose::DefKind::assign && def.value != diagnose::kNoNode
                ? taken_out_of(program, name.with(def.value))
                : Ref{};
    if (!model) return {};
  }
  return model.text() == name.text() ? Ref{} : model;
}

// model of model.module(x), model.module.encode(x), and of inner.encode(x) after inner =
// model.module; empty for other calls.
Ref wrapper_gone_below(const Program& program, const CallRef& call) {
  for (Ref at{call.module, call.call->function}; at; at = at.child(Field::object)) {
    if (const Ref model = taken_out_of(program, at)) return model;
    if (at.kind() == Kind::identifier) return taken_into(program, at);
    if (at.kind() != Kind::attribute) return {};
  }
  return {};
}

// What the hook returns is made by the call: the loss that the Trainer steps with.
bool reaches_loss(const Program& program, FunctionRef hook, Ref call) {
  const auto& returns = hook.function->returns;
  return std::any_of(returns.begin(), returns.end(), [&](diagnose::NodeId value) {
    const auto behind = facts::calls_behind(program, {hook.module, value});
    return std::find(behind.begin(), behind.end(), call) != behind.end();
  });
}

bool asks_for_wrapper(const Program& program, Ref call) {
  const auto& guards = program.guards(call);
  return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    const std::string_view text = guard.condition.text();
    return facts::contains(text, "module") || facts::contains(text, "isinstance");
  });
}

// unwrap_model(model), isinstance(model, DDP), and model = inner_of(model), which takes it out.
bool asks_or_unwraps(const Program& program, const CallRef& call, Ref model) {
  for (const char* question : {"hasattr", "isinstance", "getattr", "type", "print", "id", "len"})
    if (call.call->name == question) return true;
  return taken_out_of(program, call.ref()) || program.assigned_name(call.ref()) == model.text();
}

// The name of the wrapper in model.module, type(model), model is None, and in the choice of what
// was taken out of it or itself; model.forward is the wrapper's own.
bool only_looks_at(const Program& program, Ref name, Ref model) {
  const auto& tree = name.module->tree();
  const Field field = tree[name.node].field;
  if (field == Field::attribute || field == Field::name || field == Field::left) return true;
  const Ref around = name.with(tree[name.node].parent);
  if (around.kind() == Kind::attribute) {
    const std::string_view part = around.child(Field::attribute).text();
    return part != "forward" && part != "__call__";
  }
  if (field == Field::function) return false;
  bool in_call = false;
  for (Ref at = around; at; at = at.with(tree[at.node].parent)) {
    if (at.kind() == Kind::comparison) return !in_call;
    if (at.kind() == Kind::conditional && taken_out_of(program, at)) return !in_call;
    if (at.kind() == Kind::call && !in_call) {
      if (asks_or_unwraps(program, program.as_call(at), model)) return true;
      in_call = true;
    }
    if (at.kind() == Kind::block) return false;
  }
  return false;
}

// model(**inputs), super().compute_loss(model=model, inputs=inputs), self.loss_of(inputs, model):
// the wrapper's own forward pass runs in the same function, or may run in what it is given to.
bool runs_wrapper_too(const Program& program, FunctionRef function, Ref model) {
  const auto& tree = function.module->tree();
  const diagnose::NodeId body = function.function->body;
  for (diagnose::NodeId id = body; id < tree[body].last; ++id)
    if (tree[id].kind == Kind::identifier && tree.text(id) == model.text() &&
        !only_looks_at(program, {function.module, id}, model))
      return true;
  return false;
}

}  // namespace

std::vector<CallRef> hooks_below_wrapper(const Program& program) {
  std::vector<CallRef> out;
  if (!program.imports("transformers")) return out;
  if (facts::may_have_another_engine(program)) return out;
  FunctionRef told;  // each method once, or not at all
  FunctionRef bare;  // does not run the wrapper
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const FunctionRef function = program.enclosing_function(call.ref());
      if (!function || function == told ||
          (function.function->name != "compute_loss" && function.function->name != "training_step"))
        continue;
      const Ref model = wrapper_gone_below(program, call);
      if (!model || program.under_no_grad(call.ref()) || asks_for_wrapper(program, call.ref()))
        continue;
      if (!facts::is_model_of_hook(program, model)) continue;
      if (!(function == bare)) {
        if (runs_wrapper_too(program, function, model)) {
          told = function;
          continue;
        }
        bare = function;
      }
      if (!reaches_loss(program, function, call.ref())) continue;
      out.push_back(call);
      told = function;
    }
  return out;
}

}  // namespace bench::pitfalls
