#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Wrap;
using diagnose::Wrapper;

void check_hard_coded_device_list(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel) continue;
    const Ref ids = wrap.call.argument(1, "device_ids");
    if (!ids) continue;
    const auto list = facts::device_ids(program, wrap.call);
    if (list.size() < 2) continue;
    report
        .at(ids, Confidence::certain,
            "the list of " + std::to_string(list.size()) +
                " devices is written into the script: it fails on a machine with fewer GPUs and "
                "leaves the rest of a larger one idle")
        .help =
        "Leave device_ids out, or use list(range(torch.cuda.device_count())); choose devices "
        "with CUDA_VISIBLE_DEVICES.";
  }
}

}  // namespace bench::pitfalls
