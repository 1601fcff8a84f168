#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::TrainingLoop;
using diagnose::Wrapper;

namespace {

// The first forward has its own backward, as in a warm-up loop above the training loop.
bool backward_between(const Program& program, const CallRef& first, const CallRef& second) {
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    return backward.module == first.module && first.call->node < backward.call->node &&
           backward.call->node < second.call->node &&
           program.enclosing_function(backward.ref()) == program.enclosing_function(first.ref());
  });
}

}  // namespace

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
                     !backward_between(program, first.call, second.call) &&
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

namespace {

constexpr std::string_view kInPlace = "has been modified by an inplace operation";

}  // namespace

void judge_two_forwards_one_backward_with_buffers(const RunEvidence& run, RunReport& report) {
  const std::string error = run.error_with(kInPlace);
  if (error.empty() || !(run.number("forwards_per_backward") >= 2)) return;
  Finding& finding = report.add(
      Confidence::certain, figure(run.number("forwards_per_backward")) +
                               " forward passes came before one backward pass, and buffers that "
                               "the first had used changed in place between them");
  finding.help =
      "One forward pass on the concatenated inputs, broadcast_buffers=False, or a copy of the "
      "buffer in forward.";
  finding.evidence.emplace_back("error", error);
}

Price price_two_forwards_one_backward_with_buffers(const RunEvidence& broken,
                                                   const RunEvidence& cured) {
  return price_of_crash(broken, cured, kInPlace);
}

}  // namespace bench::pitfalls
