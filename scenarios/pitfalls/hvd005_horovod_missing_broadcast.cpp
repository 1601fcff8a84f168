#include "scenarios/pitfalls/checks.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

void check_horovod_missing_broadcast(const Program& program, Report& report) {
  if (!program.uses(Api::hvd_optimizer) || program.uses(Api::hvd_elastic)) return;
  const CallRef optimizer = program.calls(Api::hvd_optimizer).front();
  if (!program.uses(Api::hvd_broadcast_parameters) && !program.mentions("broadcast_parameters") &&
      !program.mentions("broadcast_object")) {
    report
        .at(optimizer.ref(), Confidence::certain,
            "parameters are never broadcast: Horovod, unlike DDP, does not do it, so ranks start "
            "from different weights and stay different")
        .help = "hvd.broadcast_parameters(model.state_dict(), root_rank=0).";
    return;
  }
  if (program.uses(Api::hvd_broadcast_optimizer_state) ||
      program.mentions("broadcast_optimizer_state"))
    return;
  // Where every rank reads the same file there is nothing to broadcast.
  const auto loads = program.calls_named("load_state_dict");
  if (std::none_of(loads.begin(), loads.end(), [&](const CallRef& load) {
        return program.guarded_by_rank(load.ref()) == diagnose::RankTest::main_only;
      }))
    return;
  Finding& finding =
      report.at(optimizer.ref(), Confidence::likely,
                "a checkpoint is loaded, but the optimizer's state is never broadcast from rank 0");
  finding.severity = Severity::warning;
  finding.help = "hvd.broadcast_optimizer_state(optimizer, root_rank=0).";
}

}  // namespace bench::pitfalls
