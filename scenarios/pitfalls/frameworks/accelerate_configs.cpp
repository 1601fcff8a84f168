#include "scenarios/pitfalls/frameworks/accelerate_configs.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::ShippedValue;

namespace {

// The launch line overrules a config, or goes without the one that is shipped: a number of its own,
// and another way to distribute.
bool asks_for_more(const LaunchLine& launch) {
  if (launch.launcher != Launcher::accelerate) return launch.launcher != Launcher::python;
  for (const char* flag : {"num-processes", "num-machines"})
    if (launch.flags.contains(flag) && launch.integer_flag(flag) != 1) return true;
  return launch.flags.contains("multi-gpu");
}

bool asks_for_other_engine(const LaunchLine& launch) {
  if (launch.launcher != Launcher::accelerate) return launch.launcher != Launcher::python;
  for (const char* flag : {"multi-gpu", "use-fsdp", "tpu", "use-megatron-lm"})
    if (launch.flags.contains(flag)) return true;
  return launch.flags.contains("num-processes") && !launch.flags.contains("config-file") &&
         !launch.flags.contains("use-deepspeed");
}

// accelerate launch --num_processes 8 in a shell script or document.
bool shows_more(const std::vector<ShippedValue>& counts) {
  return std::any_of(counts.begin(), counts.end(), [](const ShippedValue& count) {
    return count.place == ShippedValue::Place::command &&
           !(count.value.is_integer() && count.value.integer == 1);
  });
}

}  // namespace

bool is_configured_for_deepspeed(const Program& program) {
  const auto types = program.shipped("accelerate.distributed_type");
  const auto& launches = program.launches();
  return !types.empty() && std::all_of(types.begin(), types.end(), [](const ShippedValue& each) {
    return each.value.is_string() && each.value.string == "DEEPSPEED";
  }) && std::none_of(launches.begin(), launches.end(), asks_for_other_engine);
}

std::string one_process_of_accelerate(const Program& program) {
  const auto types = program.shipped("accelerate.distributed_type");
  const auto counts = program.shipped("accelerate.num_processes");
  const auto& launches = program.launches();
  const auto says_one = [&](const ShippedValue& type) {
    return std::any_of(counts.begin(), counts.end(), [&](const ShippedValue& count) {
      return count.file == type.file && count.value.is_integer() && count.value.integer == 1;
    });
  };
  if (types.empty() || !std::all_of(types.begin(), types.end(), says_one) ||
      shows_more(program.shipped("num_processes")) ||
      std::any_of(launches.begin(), launches.end(), asks_for_more))
    return {};
  return "the project's Accelerate config starts one process";
}

}  // namespace bench::pitfalls
