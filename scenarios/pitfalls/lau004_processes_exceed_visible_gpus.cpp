#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/nodes_of_job.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::LaunchWord;
using diagnose::Value;

namespace {

// mp.spawn(worker, nprocs=gpus * nodes): every node starts the processes of all.
void check_spawn_for_all_nodes(const Program& program, Report& report) {
  if (facts::launches_tell_nodes(program)) return;
  for (const CallRef& spawn : program.calls(Api::spawn)) {
    const Ref count = spawn.argument(2, "nprocs");
    if (!facts::counts_nodes(program, count)) continue;
    report
        .at(count, Confidence::likely,
            "each node starts the processes of all nodes: with two nodes there are twice as many "
            "as GPUs, and ranks that two processes have")
        .help = "Pass the number of processes of one node; the world size counts all.";
  }
}

}  // namespace

void check_processes_exceed_visible_gpus(const Program& program, Report& report) {
  for (const LaunchLine& launch : program.launches()) {
    const auto ranks = launch.processes_per_node();
    auto visible = launch.visible_devices();
    if (!visible && program.gpus()) visible = *program.gpus();
    if (ranks && visible && *visible > 0 && *ranks > *visible &&
        launch.launcher != Launcher::python) {
      const auto flag = launch.flags.find("nproc-per-node");
      report
          .at_word(launch.file, flag == launch.flags.end() ? launch.command : flag->second,
                   Confidence::certain,
                   std::to_string(*ranks) + " processes for " + std::to_string(*visible) +
                       " visible GPUs: CUDA error, invalid device ordinal")
          .help = "Make them equal: --nproc-per-node=gpu counts the visible GPUs.";
    }
    const bool torch =
        launch.launcher == Launcher::torchrun || launch.launcher == Launcher::launch_module;
    for (const LaunchWord& word : launch.script_arguments)
      if (torch && (word.text.starts_with("--nproc_per_node") ||
                    word.text.starts_with("--nproc-per-node") || word.text.starts_with("--nnodes")))
        report
            .at_word(launch.file, word, Confidence::certain,
                     "a flag of the launcher after the script's name goes to the script: one "
                     "process runs")
            .help = "Put it before " + launch.script.text + ".";
  }
  for (const CallRef& spawn : program.calls(Api::spawn)) {
    const Ref count = spawn.argument(2, "nprocs");
    const Value value = program.evaluate(count);
    const auto visible = facts::visible_gpus(program);
    if (value.is_integer() && !value.is_default && visible && *visible > 0 &&
        value.integer > *visible)
      report
          .at(count, Confidence::certain,
              std::to_string(value.integer) + " processes for " + std::to_string(*visible) +
                  " visible GPUs: CUDA error, invalid device ordinal")
          .help = "Use torch.cuda.device_count().";
  }
  check_spawn_for_all_nodes(program, report);
}

}  // namespace bench::pitfalls
