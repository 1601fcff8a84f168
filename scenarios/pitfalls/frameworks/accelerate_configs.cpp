#include "scenarios/pitfalls/frameworks/accelerate_configs.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Launcher;
using diagnose::LaunchLine;

namespace {

bool has_any(const LaunchLine& launch, std::initializer_list<const char*> flags) {
  return std::any_of(flags.begin(), flags.end(),
                     [&](const char* flag) { return launch.flags.contains(flag); });
}

bool takes_deepspeed(const LaunchLine& launch) {
  return launch.launcher == Launcher::accelerate && launch.flags.contains("use-deepspeed") &&
         !has_any(launch, {"multi-gpu", "use-fsdp", "tpu", "use-megatron-lm"});
}

// The number in a README's line is the first that its readers change.
bool starts_one_process(const LaunchLine& launch) {
  if (launch.launcher != Launcher::accelerate || launch.is_example || launch.has_unknown_flags)
    return false;
  return launch.integer_flag("num-processes") == 1 &&
         !has_any(launch, {"multi-gpu", "machine-rank"}) &&
         (!launch.flags.contains("num-machines") || launch.integer_flag("num-machines") == 1);
}

bool may_scale(const LaunchLine& launch) {
  if (launch.flags.contains("mixed-precision") && launch.flag("mixed-precision") != "no")
    return true;
  return has_any(launch, {"use-deepspeed", "config-file", "gradient-accumulation-steps", "fp16"});
}

// Accelerator() in a cell: only what a launcher is given runs in several processes.
bool is_in_cells(const Program& program) {
  if (!program.is_notebook() || !program.launches().empty()) return false;
  for (const char* launcher : {"notebook_launcher", "debug_launcher", "elastic_launch",
                               "TorchDistributor", "TorchTrainer", "start_processes"})
    if (program.mentions(launcher)) return false;
  for (const char* start : {"Process", "Popen", "system"})
    if (!program.calls_named(start).empty()) return false;
  return !program.uses(diagnose::Api::spawn);
}

}  // namespace

bool is_configured_for_deepspeed(const Program& program) {
  const auto& launches = program.launches();
  return !launches.empty() && std::all_of(launches.begin(), launches.end(), takes_deepspeed);
}

std::string one_process_of_accelerate(const Program& program) {
  const auto& launches = program.launches();
  const bool is_one =
      !launches.empty() && std::all_of(launches.begin(), launches.end(), starts_one_process);
  if (is_in_cells(program)) return "the cells of a notebook run in one process";
  return is_one ? "its launch lines start one process of Accelerate" : "";
}

bool may_scale_by_launch(const Program& program) {
  const auto& launches = program.launches();
  return std::any_of(launches.begin(), launches.end(), may_scale);
}

}  // namespace bench::pitfalls
