// Runs jobs in worker processes and turns what became of their ranks into one answer per job. Jobs
// that need equally many processes can share them, which saves LibTorch's start-up; when a process
// dies, the job it was in has failed and the rest run in fresh ones. A failed job may leave traces
// in its process (tensors that an exception kept alive), so that an error after it is not believed:
// the job runs again in a fresh process.
#pragma once

#include "bench/core/job.hpp"
#include "bench/launch/worker_set.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bench {

struct JobOutcome {
  RankStatus status = RankStatus::ok;  // the worst of all ranks
  std::string message;                 // skip, out_of_memory, error: why, and which rank was first
  bool interrupted = false;            // the user ended it; neither good nor failed
  std::vector<RankReport> reports;     // by rank; complete when the status is ok
  // By rank, where the processes ended with this job: how, and in which phase.
  struct End {
    EndKind kind = EndKind::finished;
    std::string phase;
  };
  std::vector<End> ends;
};

struct LaunchSettings {
  std::vector<std::string> program;  // the worker and arguments that precede --job FILE
  std::filesystem::path log_root;  // gets <label>/<rank>/{stdout,stderr}.log and <label>/jobs.json
  WorkerLimits limits;
  const Interrupt* interrupt = nullptr;
};

// "dp_vs_ddp/model:mlp/gpus:2" as the name of a directory.
std::string log_label(const std::string& case_name);

class JobRunner {
 public:
  explicit JobRunner(LaunchSettings settings) : settings_(std::move(settings)) {}

  JobOutcome run(const Job& job, const std::string& label) const;

  // All jobs in as few processes as their failures allow; job_process_count() must be the same for
  // all of them. `on_done` is called in order, as soon as a job's outcome is known.
  using OnDone = std::function<void(std::size_t index, JobOutcome outcome)>;
  void run_batch(const std::vector<Job>& jobs, const std::string& label,
                 const OnDone& on_done) const;

 private:
  bool interrupted() const;
  std::vector<WorkerSpec> specs(const std::vector<Job>& jobs, const std::string& label,
                                int port) const;

  LaunchSettings settings_;
};

}  // namespace bench
