// Runs the cases whose time is simulated. Everything that needs a worker is known from the start,
// so it is cut into batches that share worker processes, and two batches run at a time; the figures
// do not depend on the load, because they come from the simulator.
#pragma once

#include "bench/harness/case_metrics.hpp"
#include "bench/harness/task_lanes.hpp"
#include "bench/harness/verification_book.hpp"
#include "bench/launch/job_runner.hpp"
#include "bench/plan/plan.hpp"

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace bench {

// A directory of temporary files, removed with its owner unless that said to keep it.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(std::filesystem::path path);
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory();
  void keep() { path_.clear(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct SimulatedSettings {
  LaunchSettings launch;
  std::filesystem::path out;  // gets the traces; graphs live here until they are read
  int lanes = 2;
  simulator::Anchor anchor;  // factors of 1 unless --measured-single was given
};

class SimulatedRunner {
 public:
  // Starts at once. Throws UsageError when a machine cannot be loaded.
  SimulatedRunner(SimulatedSettings settings, std::vector<PlannedCase> cases);

  // Blocks until case `index` has its result; nullopt when it was interrupted.
  std::optional<CaseResult> wait(std::size_t index);

 private:
  struct Slot {
    PlannedCase planned;
    std::optional<CaseResult> result;  // before verification
    bool interrupted = false;
  };
  struct Request {  // one job and what its outcome is for
    Job job;
    std::function<void(JobOutcome)> done;
  };

  void submit(std::vector<Request> requests, const std::string& label);
  std::vector<Request> verification_requests();
  Request record_request(std::size_t index);
  Job record_job(const Case& work, const std::string& graph_file) const;
  void take_recording(std::size_t index, const Case& work, const std::string& graph_file,
                      const JobOutcome& outcome);
  void search(std::size_t index);
  void put(std::size_t index, std::optional<CaseResult> result);
  std::string graph_path(const std::string& label) const;

  SimulatedSettings settings_;
  ScratchDirectory graphs_;
  JobRunner runner_;
  std::map<std::string, simulator::Machine> machines_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  VerificationBook verifications_;
  TaskLanes lanes_;  // last: its threads use everything above
};

}  // namespace bench
