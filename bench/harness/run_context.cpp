#include "bench/harness/run_context.hpp"

#include "bench/core/fnv_hash.hpp"
#include "bench/core/utc_time.hpp"
#include "simulator/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace bench {
namespace {

// The command line of this process, as typed; arguments with blanks are quoted.
std::string own_command() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string command;
  for (std::string argument; std::getline(in, argument, '\0');) {
    const bool quote =
        argument.empty() || argument.find_first_of(" \t'\"*$;&|<>(){}") != std::string::npos;
    command += (command.empty() ? "" : " ") + (quote ? "'" + argument + "'" : argument);
  }
  return command;
}

// All GPUs that any case uses, in the order of the largest list.
std::vector<int> gpus_of(const Plan& plan) {
  std::vector<int> gpus;
  for (const PlannedCase& planned : plan.cases) {
    if (planned.work.gpus.size() > gpus.size()) gpus = planned.work.gpus;
  }
  return gpus;
}

void describe_machine(const Case& work, RunContext& context) {
  if (work.machine.empty()) {
    context.machine = std::string("this machine (") + device_kind_name(work.device) + ")";
    return;
  }
  const simulator::Machine machine = simulator::load_machine(work.machine);
  context.machine = work.machine;
  context.machine_note = fmt::format("{}; figures of the machine: {}", machine.title,
                                     simulator::provenance_name(machine.provenance()));
}

}  // namespace

RunContext make_run_context(const RunRequest& request) {
  RunContext context;
  const Plan& plan = request.plan;
  context.scenario = plan.scenario;
  context.title = plan.description;
  context.gpus = gpus_of(plan);
  context.date = utc_timestamp();
  context.command = own_command();
  context.notes = plan.notes;
  context.versions["bench"] = BENCH_VERSION;
  if (plan.cases.empty()) return context;
  const Case& first = plan.cases.front().work;
  describe_machine(first, context);
  context.device = device_kind_name(first.device);
  context.execute = execute_name(first.execute);
  context.host_profile = host_profile_name(first.host);
  context.seed = first.seed;
  context.simulated = std::all_of(plan.cases.begin(), plan.cases.end(), [](const auto& planned) {
    return planned.work.device == DeviceKind::vgpu;
  });
  if (request.measured_single_ms) {
    context.notes.push_back(
        fmt::format("simulated times are anchored to a measured single-device step of {:g} ms",
                    *request.measured_single_ms));
  }
  const double anchor = request.measured_single_ms.value_or(0);
  context.fingerprint = fnv_hex(fmt::format("{}|{}|{}|{}|{}|{}|{}", BENCH_VERSION, context.machine,
                                            context.machine_note, context.device, context.execute,
                                            context.host_profile, anchor));
  return context;
}

}  // namespace bench
