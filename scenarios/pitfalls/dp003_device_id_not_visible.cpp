#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/renumbered_ids.hpp"

#include <algorithm>
#include <vector>

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

// "cuda:2", 2, and "cuda:2" if torch.cuda.is_available() else "cpu"; of a name, what is written
// above it in the same place.
Ref written_device(const Program& program, Ref device) {
  const Kind kind = device.kind();
  if (kind == Kind::string || kind == Kind::integer || kind == Kind::conditional) return device;
  if (kind != Kind::identifier) return {};
  const auto& sources = program.sources(device);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::value) return {};
  const Ref value = sources.front().ref;
  return (value.kind() == Kind::string || value.kind() == Kind::integer) &&
                 program.enclosing_function(value) == program.enclosing_function(device)
             ? value
             : Ref{};
}

}  // namespace

void check_device_id_not_visible(const Program& program, Report& report) {
  if (const auto again = renumbered_ids(program); !again.empty() && !program.gpus()) {
    report
        .at(again.front(), Confidence::likely,
            "CUDA_VISIBLE_DEVICES is given these ids above, and they are used again: ids count "
            "from 0 after it, so any but the first GPUs are not there")
        .help = "Use ids from 0: list(range(n)), or leave the ids out.";
    return;
  }
  if (const auto read = ids_read_back(program); !read.empty() && !program.gpus()) {
    report
        .at(read.front(), Confidence::likely,
            "this id is one of those in CUDA_VISIBLE_DEVICES: ids count from 0 after it, so any "
            "but the first GPUs are not there")
        .help = "Use the local rank itself.";
    return;
  }
  const auto visible = facts::visible_gpus(program);
  if (!visible || *visible <= 0 || program.gpus()) return;
  for (const Wrap& wrap : program.wraps()) {
    const auto ids = facts::device_ids(program, wrap.call);
    const auto highest = std::max_element(ids.begin(), ids.end());
    if (highest != ids.end() && *highest >= *visible)
      report_invisible(wrap.call.argument(1, "device_ids"), *highest, *visible, report);
  }
  std::vector<Ref> told;  // "cuda:2" by a name, which several calls take
  for (const std::string_view method : {"to", "cuda", "device", "set_device"})
    for (const CallRef& call : program.calls_named(method)) {
      const Ref device = written_device(program, call.argument(0, "device"));
      const auto index = device ? facts::cuda_index(program, device) : std::nullopt;
      if (!index || *index < *visible || std::find(told.begin(), told.end(), device) != told.end())
        continue;
      told.push_back(device);
      report_invisible(device, *index, *visible, report);
    }
}

}  // namespace bench::pitfalls
