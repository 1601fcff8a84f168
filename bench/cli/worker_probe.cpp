#include "bench/cli/worker_probe.hpp"

#include "bench/core/error.hpp"
#include "bench/core/temporary_directory.hpp"
#include "bench/launch/job_runner.hpp"

#include <filesystem>
#include <fstream>

namespace bench::cli {
namespace {

// LibTorch and the CUDA driver take seconds to start on a cold machine, never this long.
constexpr std::chrono::seconds kLimit{60};

// The last line of what the worker said, which is usually why it failed; its log goes with us.
std::string last_words(const std::filesystem::path& logs) {
  std::ifstream file(logs / "probe" / "0" / "stderr.log");
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "" : ": " + last;
}

}  // namespace

RankReport probe_worker(const WorkerProgram& program) {
  const TemporaryDirectory logs;  // with the job file
  LaunchSettings settings;
  settings.program = {program.path.string()};
  settings.program.insert(settings.program.end(), program.arguments.begin(),
                          program.arguments.end());
  settings.log_root = logs.path();
  settings.limits.silence = kLimit;
  settings.limits.job = kLimit;
  Job job;
  job.kind = JobKind::probe;
  const JobOutcome outcome = JobRunner(settings).run(job, "probe");
  if (outcome.status != RankStatus::ok || outcome.reports.empty()) {
    const std::string message = outcome.message.substr(0, outcome.message.find("; log:"));
    throw MachineError(program.path.string() + ": " + message + last_words(logs.path()));
  }
  return outcome.reports[0];
}

}  // namespace bench::cli
