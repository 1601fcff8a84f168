// bench calibrate: measures this machine's GPU and writes a machine file that --machine reads.
#include "bench/calibrate/machine_text.hpp"
#include "bench/cli/calibrate_flags.hpp"
#include "bench/cli/commands.hpp"
#include "bench/cli/help.hpp"
#include "bench/cli/worker_lookup.hpp"
#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/core/utc_time.hpp"
#include "bench/harness/simulated_runner.hpp"
#include "bench/launch/job_runner.hpp"
#include "bench/plan/devices.hpp"
#include "report/run_files.hpp"

#include <unistd.h>

#include <cstdio>

namespace bench::cli {
namespace {

namespace fs = std::filesystem;

// Every operator is a sign of life; loading CUDA's libraries for the first time takes longest.
constexpr std::chrono::milliseconds kSilence{120'000};
constexpr std::chrono::milliseconds kLongest{1'800'000};

std::string command_of(const Arguments& arguments) {
  std::string text = "bench calibrate";
  for (const std::string& argument : arguments) text += " " + argument;
  return text;
}

// What is measured, and what the driver says about it.
struct Target {
  std::vector<int> gpus;
  std::string title;
  std::string driver;
};

Target find_target(const CalibrateRequest& request) {
  const Hardware hardware = query_hardware();
  if (request.device == DeviceKind::cuda && hardware.gpus.empty()) {
    throw MachineError("--gpus: expected a GPU to measure: " + hardware.unavailable +
                       "; --device cpu measures this CPU, and `bench list machines` has figures "
                       "of GPUs that are not here");
  }
  DeviceRequest devices_request;
  devices_request.device = request.device;
  Devices devices = resolve_devices(devices_request, hardware);
  Target target;
  target.gpus = select_gpus(request.gpus, devices);
  target.title = devices.title;
  if (request.device == DeviceKind::cuda) target.driver = hardware.driver_version;
  for (const std::string& note : devices.notes) std::fprintf(stderr, "%s\n", note.c_str());
  return target;
}

class Measurement {
 public:
  Measurement(const CalibrateRequest& request, const Target& target)
      : request_(request),
        target_(target),
        scratch_(fs::temp_directory_path() / ("bench-calibrate-" + std::to_string(::getpid()))) {
    fs::create_directories(scratch_.path());
  }

  CalibrationSamples run() {
    CalibrationSamples samples = run_job(Strategy::single, "operators, launches, copies, memory");
    samples.driver = target_.driver;
    if (target_.gpus.size() < 2) return samples;
    samples.all_reduce = run_job(Strategy::distributed, "all-reduce").all_reduce;
    return samples;
  }

 private:
  CalibrationSamples run_job(Strategy strategy, const char* what) {
    std::fprintf(stderr, "calibrate: %s of %s\n", what, target_.title.c_str());
    Job job;
    job.kind = JobKind::calibrate;
    job.work.scenario = "calibrate";
    job.work.strategy = strategy;
    job.work.device = request_.device;
    job.work.execute = Execute::numeric;
    job.work.gpus = target_.gpus;
    job.work.batch = job.work.world_size();
    job.samples_file = (scratch_.path() / strategy_name(strategy)).string() + ".json";
    job.quick = request_.quick;
    const WorkerProgram worker = find_worker(request_.worker);
    LaunchSettings launch;
    launch.program = {worker.path.string()};
    launch.program.insert(launch.program.end(), worker.arguments.begin(), worker.arguments.end());
    launch.log_root = scratch_.path() / "logs";
    launch.limits.silence = kSilence;
    launch.limits.job = kLongest;
    launch.interrupt = &interrupt_;
    const JobOutcome outcome = JobRunner(launch).run(job, strategy_name(strategy));
    if (outcome.interrupted) throw Error(kExitInterrupted, "calibrate: interrupted");
    if (outcome.status != RankStatus::ok) {
      // The logs go with the scratch directory.
      throw MachineError("calibrate: " + outcome.message.substr(0, outcome.message.find("; log:")));
    }
    return read_samples(job.samples_file);
  }

  const CalibrateRequest& request_;
  const Target& target_;
  ScratchDirectory scratch_;
  Interrupt interrupt_;
};

CalibrationSamples obtain(const CalibrateRequest& request) {
  if (!request.samples.empty()) return read_samples(request.samples.string());
  const Target target = find_target(request);
  require_writable_file(request.out, "--out");
  require_writable_file(request.save, "--save-samples");
  CalibrationSamples samples = Measurement(request, target).run();
  if (!request.save.empty()) {
    report::write_file_atomically(request.save, samples_to_json(samples));
  }
  return samples;
}

void print_summary(const CalibratedMachine& calibrated, const CalibrateRequest& request) {
  const FitLine& all = calibrated.lines.back();
  std::fprintf(
      stderr,
      "calibrate: %d operators, the file gives their times back within %.1f %% on average, "
      "%.1f %% at worst\n",
      all.samples, 100 * all.mean_error, 100 * all.worst_error);
  if (request.out.empty()) return;
  std::fprintf(stderr, "calibrate: wrote %s; use it as --machine %s\n", request.out.c_str(),
               request.out.c_str());
}

}  // namespace

int calibrate_command(const Arguments& arguments) {
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    std::fputs(
        (subcommand_text(*find_subcommand("calibrate")) + flags_text(calibrate_flags())).c_str(),
        stdout);
    return kExitClean;
  }
  const Typed typed = parse_flags(arguments, calibrate_flags(), "bench calibrate");
  const CalibrateRequest request = parse_calibrate_request(typed);
  const CalibrationSamples samples = obtain(request);
  const CalibratedMachine calibrated = fit_machine(samples);
  const std::string text =
      machine_text(calibrated, samples, {command_of(arguments), utc_timestamp()});
  if (request.out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    report::write_file_atomically(request.out, text);
  }
  print_summary(calibrated, request);
  return kExitClean;
}

}  // namespace bench::cli
