#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::RankTest;
using diagnose::Wrapper;

void check_rank0_forward_through_wrapper(const Program& program, Report& report) {
  for (const auto& forward : program.forward_calls()) {
    if (forward.wrap->kind != Wrapper::ddp) continue;
    if (program.is_literal_false(forward.wrap->call.keyword("broadcast_buffers"))) continue;
    if (program.guarded_by_rank(forward.call.ref()) == RankTest::none) continue;
    const bool buffers = facts::has_batch_norm(program, *forward.wrap);
    Finding& finding = report.at(
        forward.call.ref(), buffers ? Confidence::certain : Confidence::likely,
        "one rank alone calls the DDP model: a forward broadcasts the buffers, and the other ranks "
        "do not take part");
    // A model that is visible and has no BatchNorm broadcasts nothing.
    if (!buffers && !forward.wrap->classes.empty()) finding.severity = Severity::info;
    finding.help = "Evaluate with model.module, or on every rank.";
  }
}

}  // namespace bench::pitfalls
