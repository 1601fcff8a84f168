#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::TrainingLoop;
using diagnose::Wrapper;

void check_two_forwards_one_backward_with_buffers(const Program& program, Report& report) {
  if (!program.has_ddp() || program.uses(Api::convert_sync_batch_norm)) return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const auto forwards = facts::forwards_behind(program, facts::loss_of(backward));
      for (std::size_t i = 1; i < forwards.size(); ++i) {
        const auto& second = forwards[i];
        const bool again = std::any_of(
            forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(i),
            [&](const auto& first) {
              return first.wrap == second.wrap && first.call.module == second.call.module &&
                     !facts::exclusive(first.call.ref(), second.call.ref()) &&
                     !program.under_no_grad(first.call.ref());
            });
        if (!again || second.wrap->kind != Wrapper::ddp || program.under_no_grad(second.call.ref()))
          continue;
        if (program.is_literal_false(second.wrap->call.keyword("broadcast_buffers"))) continue;
        if (!facts::has_batch_norm(program, *second.wrap)) continue;
        report
            .at(second.call.ref(), Confidence::likely,
                "a second forward of the DDP model before backward: it broadcasts the BatchNorm "
                "buffers "
                "again, in place, and backward finds them modified")
            .help =
            "Run one forward on torch.cat([a, b]); or broadcast_buffers=False, or SyncBatchNorm.";
        break;
      }
    }
}

}  // namespace bench::pitfalls
