#include "scenarios/pitfalls/steps/step_guards.hpp"

#include <algorithm>

namespace bench::pitfalls {

std::vector<diagnose::Guard> guards_of_step(const Program& program,
                                            const diagnose::TrainingLoop& loop,
                                            const CallRef& step) {
  std::vector<diagnose::Guard> out = program.guards(step.ref());
  const auto helper = program.enclosing_function(step.ref());
  if (!helper || helper == loop.function) return out;
  const CallRef* only = nullptr;
  for (const CallRef& site : program.call_sites(helper)) {
    if (site.module != loop.batches.module ||
        !site.module->tree().contains(loop.batches.node, site.call->node))
      continue;
    if (only != nullptr) return out;  // another step of the same round
    only = &site;
  }
  // train_on(batch): with the step the helper leaves out the pass itself.
  if (only == nullptr || program.subtree_calls(only->ref(), [](const CallRef& call) {
        return call.call->name == "backward";
      }))
    return out;
  for (const diagnose::Guard& guard : program.guards(only->ref())) out.push_back(guard);
  return out;
}

bool runs_instead_of(const Program& program, Ref node, Ref step) {
  const auto without = program.guards(step);
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return std::find(without.begin(), without.end(),
                     diagnose::Guard{guard.condition, !guard.holds}) != without.end();
  });
}

}  // namespace bench::pitfalls
