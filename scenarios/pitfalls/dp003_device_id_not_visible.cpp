#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Kind;
using diagnose::Wrap;

namespace {

void report_invisible(Ref where, std::int64_t index, std::int64_t visible, Report& report) {
  report
      .at(where, Confidence::certain,
          "device " + std::to_string(index) + " is used, but " + std::to_string(visible) +
              (visible == 1 ? " device is" : " devices are") +
              " visible: ids count from 0 again after CUDA_VISIBLE_DEVICES")
      .help = "Use ids 0 to " + std::to_string(visible - 1) + ", or leave the ids out.";
}

}  // namespace

void check_device_id_not_visible(const Program& program, Report& report) {
  const auto visible = facts::visible_gpus(program);
  if (!visible || *visible <= 0 || program.gpus()) return;
  for (const Wrap& wrap : program.wraps()) {
    const auto ids = facts::device_ids(program, wrap.call);
    const auto highest = std::max_element(ids.begin(), ids.end());
    if (highest != ids.end() && *highest >= *visible)
      report_invisible(wrap.call.argument(1, "device_ids"), *highest, *visible, report);
  }
  for (const std::string_view method : {"to", "cuda", "device", "set_device"})
    for (const CallRef& call : program.calls_named(method)) {
      const Ref device = call.argument(0, "device");
      if (!device) continue;
      const bool own = device.kind() == Kind::string || device.kind() == Kind::integer;
      const auto index = own ? facts::cuda_index(program, device) : std::nullopt;
      if (index && *index >= *visible) report_invisible(device, *index, *visible, report);
    }
}

}  // namespace bench::pitfalls
