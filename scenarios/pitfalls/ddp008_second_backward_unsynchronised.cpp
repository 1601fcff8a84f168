#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::TrainingLoop;
using diagnose::Wrapper;

void check_second_backward_unsynchronised(const Program& program, Report& report) {
  if (!program.has_ddp()) return;
  for (const TrainingLoop& loop : program.training_loops())
    for (std::size_t i = 1; i < loop.backwards.size(); ++i) {
      const CallRef& second = loop.backwards[i];
      for (std::size_t j = 0; j < i; ++j) {
        const CallRef& first = loop.backwards[j];
        if (first.module != second.module ||
            program.enclosing_function(first.ref()) != program.enclosing_function(second.ref()) ||
            facts::exclusive(first.ref(), second.ref()))
          continue;
        const auto before = facts::forwards_behind(program, facts::loss_of(first));
        const auto after = facts::forwards_behind(program, facts::loss_of(second));
        const bool shared = std::any_of(before.begin(), before.end(), [&](const auto& a) {
          return std::any_of(after.begin(), after.end(), [&](const auto& b) {
            return a.call.ref() == b.call.ref() && a.wrap->kind == Wrapper::ddp;
          });
        });
        if (!shared) continue;
        report
            .at(second.ref(), Confidence::certain,
                "a second backward pass on one DDP forward: only the first is reduced, this one "
                "adds local gradients and the replicas drift apart")
            .help = "Add the losses and call backward once, or run a forward pass for each.";
        j = i;
      }
    }
}

}  // namespace bench::pitfalls
