#include "bench/cli/pitfalls_command.hpp"

#include "bench/cli/output_directory.hpp"
#include "bench/cli/worker_lookup.hpp"
#include "bench/core/error.hpp"
#include "bench/harness/pitfall_laboratory.hpp"
#include "diagnose/output/render.hpp"
#include "report/renderer.hpp"
#include "report/run_files.hpp"

#include <cstdio>
#include <iostream>

namespace bench::cli {
namespace {

// A trial says itself on what it runs; flags of a sweep would be ignored without a word.
std::uint64_t seed_of(const RunFlags& flags) {
  Settings settings;
  for (const TypedFlag& flag : flags.settings) {
    if (flag.name != "--seed")
      throw UsageError(flag.name +
                       ": does not go with --scenario pitfalls; expected --select, "
                       "--seed, --out or --dry-run");
  }
  apply_settings(flags.settings, settings);
  return settings.seed;
}

void refuse_flags_of_sweeps(const RunFlags& flags) {
  const auto refuse = [](const char* flag) {
    throw UsageError(std::string(flag) +
                     ": does not go with --scenario pitfalls, whose trials "
                     "run on virtual GPUs of their own");
  };
  if (!flags.devices.gpus.empty()) refuse("--gpus");
  if (!flags.devices.machine.empty()) refuse("--machine");
  if (flags.devices.device && *flags.devices.device != DeviceKind::vgpu) refuse("--device");
  if (flags.measured_single_ms) refuse("--measured-single");
  if (!flags.resume.empty()) refuse("--resume");
  if (!flags.benchmark_flags.empty()) refuse("--benchmark_*");
}

}  // namespace

int pitfalls_command(const RunFlags& flags) {
  refuse_flags_of_sweeps(flags);
  LaboratoryRequest request;
  request.seed = seed_of(flags);
  request.trials = pitfalls::select_trials(flags.select);
  if (flags.dry_run) {
    for (const pitfalls::Trial* trial : request.trials)
      std::printf("pitfalls/%s\n", pitfalls::title_of(*trial).c_str());
    return kExitClean;
  }
  const WorkerProgram worker = find_worker(flags.worker);
  request.worker = worker.path;
  request.worker_arguments = worker.arguments;
  request.out = prepare_output(flags.out, std::string(kPitfallsScenario));
  const LaboratoryOutcome outcome = run_laboratory(request, std::cerr);
  report::write_file_atomically(request.out / "findings.sarif",
                                diagnose::render_sarif(outcome.findings, {}));
  const auto model = report::finished_report(outcome.result, request.out.string());
  const auto text =
      report::find_renderer("terminal")->render(model, report::standard_output_options());
  std::fputs(text.c_str(), stdout);
  return outcome.exit_code;
}

}  // namespace bench::cli
