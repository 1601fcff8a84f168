// bench --scenario ...: flags and scenario become a plan, the harness runs it, the renderer shows
// it.
#include "bench/cli/command_record.hpp"
#include "bench/cli/commands.hpp"
#include "bench/cli/output_directory.hpp"
#include "bench/cli/plan_listing.hpp"
#include "bench/cli/run_flags.hpp"
#include "bench/cli/worker_lookup.hpp"
#include "bench/core/error.hpp"
#include "bench/plan/expand.hpp"
#include "bench/plan/run_request.hpp"
#include "bench/plan/scenario_file.hpp"

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace bench::cli {
namespace {

// CUDA numbers GPUs by speed unless told otherwise; NVML, and so --gpus, by PCI bus.
void number_gpus_by_bus() { setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0); }

Plan plan_from(const RunFlags& flags) {
  Settings settings = load_scenario(flags.scenario);
  apply_settings(flags.settings, settings);
  require_complete(settings);
  Devices devices = resolve_devices(flags.devices, query_hardware());
  const std::vector<int> gpus = select_gpus(flags.devices.gpus, devices);
  return make_plan(settings, devices, gpus);
}

}  // namespace

int run_command(const Arguments& typed) {
  number_gpus_by_bus();
  const RunFlags flags = parse_run_flags(typed);
  RunRequest request;
  request.plan = plan_from(flags);
  if (flags.dry_run) {
    std::fputs(plan_listing(request.plan).c_str(), stdout);
    return kExitClean;
  }
  throw MachineError("this build has no harness");
}

}  // namespace bench::cli
