#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Wrap;
using diagnose::Wrapper;

void check_module_not_on_first_device(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel) continue;
    const std::vector<std::int64_t> ids = facts::device_ids(program, wrap.call);
    const std::vector<CallRef> placements = facts::placements(program, wrap);
    if (ids.size() < 2) continue;
    std::optional<int> last;
    bool known = true;
    for (const CallRef& call : placements) {
      const Ref device = call.argument(0, "device");
      last = !device && call.call->name == "cuda" ? 0 : facts::cuda_index(program, device);
      if (!last) known = false;
      if (last && *last < 0) last = 0;
    }
    if (!known) continue;
    if (placements.empty()) {
      // Something else may place it: a default device, or a model that builds itself on the GPU.
      if (wrap.classes.empty() || program.mentions("set_default_device") ||
          program.mentions("set_default_tensor_type") || program.uses(Api::set_device))
        continue;
      report
          .at(wrap.call.ref(), Confidence::likely,
              "the module is never moved to cuda:" + std::to_string(ids.front()) +
                  ", the first of device_ids: its first forward raises RuntimeError")
          .help =
          "Call model.to(\"cuda:" + std::to_string(ids.front()) + "\") before the first forward.";
      continue;
    }
    // set_device changes where .cuda() goes.
    if (*last == ids.front() || program.uses(Api::set_device)) continue;
    report
        .at(wrap.call.ref(), Confidence::certain,
            "the module is on cuda:" + std::to_string(*last) + " but device_ids starts with " +
                std::to_string(ids.front()) + ": the first forward raises RuntimeError")
        .help = "Move the module to cuda:" + std::to_string(ids.front()) +
                ", the first of device_ids, before the first forward.";
  }
}

}  // namespace bench::pitfalls
