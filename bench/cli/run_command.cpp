// bench --scenario ...: flags and scenario become a plan, the harness runs it, the report shows it.
#include "bench/cli/command_record.hpp"
#include "bench/cli/commands.hpp"
#include "bench/cli/output_directory.hpp"
#include "bench/cli/pitfalls_command.hpp"
#include "bench/cli/plan_listing.hpp"
#include "bench/cli/run_flags.hpp"
#include "bench/cli/worker_lookup.hpp"
#include "bench/core/error.hpp"
#include "bench/harness/case_findings.hpp"
#include "bench/harness/gbench_flags.hpp"
#include "bench/harness/run_scenario.hpp"
#include "bench/plan/expand.hpp"
#include "bench/plan/scenario_file.hpp"
#include "diagnose/output/render.hpp"
#include "report/renderer.hpp"
#include "report/run_files.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
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

// `bench --resume DIR` repeats the command that started the run in DIR, from where it was given;
// flags typed now overwrite it.
RunFlags resumed(const Arguments& typed, RunFlags flags) {
  flags.resume = std::filesystem::absolute(resume_output(flags.resume)).string();
  if (!flags.scenario.empty()) return flags;
  const CommandRecord record = read_command_record(flags.resume);
  RunFlags repeated = parse_run_flags(merged_arguments(record.arguments, typed));
  repeated.resume = flags.resume;
  std::error_code gone;
  std::filesystem::current_path(record.directory, gone);
  return repeated;
}

// Everything that can be refused is refused before the output directory is made.
RunRequest request_from(const RunFlags& flags, Plan plan) {
  (void)parse_benchmark_flags(flags.benchmark_flags);
  RunRequest request;
  const WorkerProgram worker = find_worker(flags.worker);
  request.worker = worker.path;
  request.worker_arguments = worker.arguments;
  request.resume = !flags.resume.empty();
  request.out = request.resume ? std::filesystem::path(flags.resume)
                               : prepare_output(flags.out, plan.scenario);
  request.case_time_out = flags.case_time_out;
  request.measured_single_ms = flags.measured_single_ms;
  request.benchmark_flags = flags.benchmark_flags;
  request.plan = std::move(plan);
  return request;
}

bool lists_tests(const RunFlags& flags) {
  for (const std::string& flag : flags.benchmark_flags) {
    if (flag.starts_with("--benchmark_list_tests") && !flag.ends_with("=false")) return true;
  }
  return false;
}

void show(const RunRequest& request, const RunOutcome& outcome) {
  const auto model = report::finished_report(outcome.result, request.out.string());
  const auto text =
      report::find_renderer("terminal")->render(model, report::standard_output_options());
  std::fputs(text.c_str(), stdout);
}

}  // namespace

int run_command(const Arguments& typed) {
  number_gpus_by_bus();
  RunFlags flags = parse_run_flags(typed);
  if (!flags.resume.empty()) flags = resumed(typed, std::move(flags));
  if (flags.scenario == kPitfallsScenario) return pitfalls_command(flags);
  if (!flags.select.empty()) throw UsageError("--select: goes with --scenario pitfalls only");
  Plan plan = plan_from(flags);
  if (flags.dry_run) {
    std::fputs(plan_listing(plan).c_str(), stdout);
    return kExitClean;
  }
  if (lists_tests(flags)) {
    RunRequest request;
    request.plan = std::move(plan);
    request.benchmark_flags = flags.benchmark_flags;
    return run_scenario(request, std::cout, std::cerr).exit_code;
  }
  const RunRequest request = request_from(flags, std::move(plan));
  if (!request.resume) write_command_record(request.out, typed);
  const RunOutcome outcome = run_scenario(request, std::cout, std::cerr);
  report::write_file_atomically(request.out / "findings.sarif",
                                diagnose::render_sarif(run_findings(outcome.result), {}));
  if (!outcome.out_used) show(request, outcome);
  return outcome.exit_code;
}

}  // namespace bench::cli
