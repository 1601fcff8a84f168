#include "diagnose/to_ddp/cpu_states.hpp"

#include "diagnose/to_ddp/trains.hpp"
#include "scenarios/pitfalls/program/edits.hpp"

#include <string>

namespace bench::diagnose {
namespace {

// net.module of net.module.cpu().state_dict(), whatever finds net: net = getattr(self, "net" +
// name). Not self.module, which an object has of its own. Empty for another state.
Ref moved_model(const Program& program, const CallRef& state) {
  const CallRef move = state.receiver() ? program.as_call(state.receiver()) : CallRef{};
  if (!move || !move.receiver() || state.positional(0)) return {};
  const bool is_to_cpu =
      (move.call->name == "cpu" && !move.positional(0)) ||
      (move.call->name == "to" && program.string(move.argument(0, "device")) == "cpu");
  const Ref model = move.receiver();
  const bool is_inner = model.kind() == Kind::attribute &&
                        model.child(Field::attribute).text() == "module" &&
                        model.child(Field::object).text() != "self";
  return is_to_cpu && is_inner ? model : Ref{};
}

// The names in the comprehension are its own.
std::string copied(Ref model) {
  return "{key: value.cpu() for key, value in " + std::string(model.text()) +
         ".state_dict().items()}";
}

}  // namespace

std::vector<Finding> states_to_copy(const ReachedCode& reached) {
  const Program& rewritten = reached.program();
  std::vector<Finding> out;
  for (const CallRef& state : rewritten.calls_named("state_dict")) {
    const Ref model = moved_model(rewritten, state);
    if (!model || !reached.comes_by(state.ref()) || !is_before_training(rewritten, state.ref()))
      continue;  // the run may want the model itself on the CPU, at its end
    Finding made;
    made.rule = "DDP006";
    made.file = state.module->path();
    made.line = state.module->tree().line_of(state.call->node);
    made.message =
        "the wrapped model moves to the CPU to be saved: on the way its parameters lose DDP's "
        "hooks, and gradients are not averaged any more";
    pitfalls::replace(state.ref(), copied(model), "Save a copy on the CPU", made);
    if (made.fix) out.push_back(std::move(made));
  }
  return out;
}

}  // namespace bench::diagnose
