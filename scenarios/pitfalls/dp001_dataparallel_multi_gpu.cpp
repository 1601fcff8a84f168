#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// if isinstance(net, DataParallel): net = Synchronised(net.module, device_ids=net.device_ids): the
// choice was made where the model was wrapped first.
bool is_wrapped_anew(const Program& program, const Wrap& wrap) {
  const auto guards = program.guards(wrap.call.ref());
  return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    return guard.holds && facts::contains(guard.condition.text(), "isinstance(") &&
           facts::contains(guard.condition.text(), "DataParallel");
  });
}

}  // namespace

void check_dataparallel_multi_gpu(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel) continue;
    if (facts::device_ids(program, wrap.call).size() == 1) continue;
    if (is_wrapped_anew(program, wrap)) continue;
    // DP as the fallback of a script that also has DDP is a choice the author made.
    if (program.has_ddp() && !diagnose::guards_where_made(program, wrap.call).empty()) continue;
    Finding& finding =
        report.at(wrap.call.ref(), Confidence::certain,
                  "DataParallel copies the model to every GPU in every step and runs "
                  "all replicas under one interpreter lock");
    finding.help =
        "Use DistributedDataParallel, one process for each GPU (torchrun); "
        "bench diagnose --to-ddp shows the steps.";
  }
}

}  // namespace bench::pitfalls
