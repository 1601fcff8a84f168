#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Launcher;
using diagnose::LaunchLine;

void check_horovod_launch(const Program& program, Report& report) {
  if (!program.uses(Api::hvd_init)) return;
  // One process is what inference wants.
  const bool trains = !program.calls_named("backward").empty() || program.uses(Api::hvd_optimizer);
  if (!trains && (program.uses(Api::no_grad) || !program.calls_named("eval").empty())) return;
  for (const LaunchLine& launch : program.launches()) {
    if (launch.launcher != Launcher::python && launch.launcher != Launcher::torchrun) continue;
    report
        .at(program.calls(Api::hvd_init).front().ref(), Confidence::certain,
            launch.launcher == Launcher::python
                ? "started with plain python, hvd.size() is 1: it trains alone, silently"
                : "torchrun starts processes that Horovod does not know of: each trains alone")
        .help = "horovodrun -np N python " + launch.script.text + "; or move to DDP.";
    return;
  }
}

}  // namespace bench::pitfalls
