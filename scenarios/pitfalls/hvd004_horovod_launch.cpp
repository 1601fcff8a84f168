#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Launcher;
using diagnose::LaunchLine;

namespace {

// Beside a line for several processes, in one file, plain python is meant.
bool has_horovod_line(const Program& program, const std::string& file) {
  const auto& launches = program.launches();
  return std::any_of(launches.begin(), launches.end(), [&](const LaunchLine& launch) {
    return launch.launcher == Launcher::horovodrun && launch.file == file;
  });
}

}  // namespace

void check_horovod_launch(const Program& program, Report& report) {
  if (!program.uses(Api::hvd_init)) return;
  // One process is what inference wants.
  const bool trains = !program.calls_named("backward").empty() || program.uses(Api::hvd_optimizer);
  if (!trains && (program.uses(Api::no_grad) || !program.calls_named("eval").empty())) return;
  // A script that joins only if it is told to may run alone.
  const CallRef& init = program.calls(Api::hvd_init).front();
  if (program.under(init.ref(), [](Ref condition, bool) {
        return !facts::contains(condition.text(), "__name__");
      }))
    return;
  for (const LaunchLine& launch : program.launches()) {
    if (launch.launcher != Launcher::python && launch.launcher != Launcher::torchrun) continue;
    if (launch.launcher == Launcher::python &&
        (launch.is_example || has_horovod_line(program, launch.file)))
      continue;
    report
        .at(init.ref(), Confidence::certain,
            launch.launcher == Launcher::python
                ? "started with plain python, hvd.size() is 1: it trains alone, silently"
                : "torchrun starts processes that Horovod does not know of: each trains alone")
        .help = "horovodrun -np N python " + launch.script.text + "; or move to DDP.";
    return;
  }
}

}  // namespace bench::pitfalls
