#include "scenarios/pitfalls/wrappers/hook_bypass.hpp"

#include "scenarios/pitfalls/frameworks/trainer_hooks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;

namespace {

// model of model.module(x) and model.module.forward(x); empty for other calls.
Ref wrapper_gone_below(const CallRef& call) {
  Ref callee{call.module, call.call->function};
  if (callee.kind() != Kind::attribute) return {};
  if (call.call->name == "forward") callee = callee.child(Field::object);
  if (callee.kind() != Kind::attribute || callee.child(Field::attribute).text() != "module")
    return {};
  const Ref model = callee.child(Field::object);
  return model.kind() == Kind::identifier ? model : Ref{};
}

// def compute_loss(self, model, inputs): the Trainer's wrapper.
bool is_handed_model(const Program& program, FunctionRef function, Ref model) {
  constexpr std::size_t kModel = 1;  // behind self
  const auto& parameters = function.function->parameters;
  const std::string_view name = function.function->name;
  return (name == "compute_loss" || name == "training_step") && parameters.size() > kModel &&
         parameters[kModel].name == model.text() &&
         facts::is_trainer_hook(program, program.enclosing_class(model), name);
}

bool asks_for_wrapper(const Program& program, Ref call) {
  const auto& guards = program.guards(call);
  return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    const std::string_view text = guard.condition.text();
    return facts::contains(text, "module") || facts::contains(text, "isinstance");
  });
}

// model(**inputs) or super().compute_loss(model, inputs) in the same function.
bool runs_wrapper_too(const Program& program, FunctionRef function, Ref model) {
  const auto calls = facts::calls_in({function.module, function.function->node});
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    if (function.module->text(call.call->function) == model.text()) return true;
    const Ref given = call.positional(0);
    return given && given.text() == model.text() && program.assigned_name(call.ref()) != "model";
  });
}

}  // namespace

std::vector<CallRef> hooks_below_wrapper(const Program& program) {
  std::vector<CallRef> out;
  if (!program.imports("transformers")) return out;
  for (const char* engine : {"deepspeed", "fsdp", "FullyShardedDataParallel"})
    if (program.mentions(engine)) return out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref model = wrapper_gone_below(call);
      if (!model || program.under_no_grad(call.ref()) || asks_for_wrapper(program, call.ref()))
        continue;
      const FunctionRef function = program.enclosing_function(call.ref());
      if (function && is_handed_model(program, function, model) &&
          !runs_wrapper_too(program, function, model))
        out.push_back(call);
    }
  return out;
}

}  // namespace bench::pitfalls
