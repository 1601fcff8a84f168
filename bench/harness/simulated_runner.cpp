#include "bench/harness/simulated_runner.hpp"

#include "bench/core/error.hpp"
#include "bench/harness/max_batch.hpp"
#include "report/run_files.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace bench {
namespace {

namespace fs = std::filesystem;

// Enough jobs to make a worker's start-up (0.3 s with LibTorch) small, few enough to keep both
// lanes busy to the end.
constexpr std::size_t kJobsPerProcess = 12;
constexpr int kProbesPerRound = 7;

}  // namespace

ScratchDirectory::ScratchDirectory(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw MachineError(path_.string() + ": " + error.message());
}

ScratchDirectory::~ScratchDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

SimulatedRunner::SimulatedRunner(SimulatedSettings settings, std::vector<PlannedCase> cases)
    : settings_(std::move(settings)),
      graphs_(settings_.out / "graphs"),
      runner_(settings_.launch),
      lanes_(settings_.lanes) {
  for (PlannedCase& planned : cases) {
    const std::string& name = planned.work.machine;
    if (!machines_.contains(name)) machines_.emplace(name, simulator::load_machine(name));
    slots_.push_back({std::move(planned), std::nullopt, false});
  }
  lanes_.after_task = [this] { changed_.notify_all(); };
  submit(verification_requests(), "verify");
  std::vector<Request> records;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].planned.search) records.push_back(record_request(i));
  }
  submit(std::move(records), "record");
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].planned.search) lanes_.add([this, i] { search(i); });
  }
}

std::string SimulatedRunner::graph_path(const std::string& label) const {
  return (graphs_.path() / (label + ".graph")).string();
}

// Batches of jobs with equally many processes, in order.
void SimulatedRunner::submit(std::vector<Request> requests, const std::string& label) {
  std::map<int, std::vector<Request>> by_processes;
  for (Request& request : requests) {
    const int processes = job_process_count(request.job);
    by_processes[processes].push_back(std::move(request));
  }
  int number = 0;
  for (auto& [processes, all] : by_processes) {
    for (std::size_t begin = 0; begin < all.size(); begin += kJobsPerProcess) {
      const std::size_t end = std::min(all.size(), begin + kJobsPerProcess);
      std::vector<Request> batch(std::make_move_iterator(all.begin() + begin),
                                 std::make_move_iterator(all.begin() + end));
      const std::string name = label + "-" + std::to_string(++number);
      lanes_.add([this, name, batch = std::move(batch)] {
        std::vector<Job> jobs;
        for (const Request& request : batch) jobs.push_back(request.job);
        runner_.run_batch(jobs, name, [&](std::size_t i, JobOutcome outcome) {
          batch[i].done(std::move(outcome));
        });
      });
    }
  }
}

std::vector<SimulatedRunner::Request> SimulatedRunner::verification_requests() {
  std::vector<Request> requests;
  for (const Slot& slot : slots_) {
    for (const Job& job : verifications_.add(slot.planned.work)) {
      requests.push_back({job, [this, job](JobOutcome outcome) {
                            const std::lock_guard lock(mutex_);
                            verifications_.put(job, std::move(outcome));
                            changed_.notify_all();
                          }});
    }
  }
  return requests;
}

Job SimulatedRunner::record_job(const Case& work, const std::string& graph_file) const {
  Job job;
  job.kind = JobKind::record;
  job.work = work;
  job.graph_file = graph_file;
  return job;
}

SimulatedRunner::Request SimulatedRunner::record_request(std::size_t index) {
  const Case& work = slots_[index].planned.work;
  const std::string file = graph_path(std::to_string(index));
  return {record_job(work, file), [this, index, work, file](JobOutcome outcome) {
            take_recording(index, work, file, outcome);
          }};
}

void SimulatedRunner::take_recording(std::size_t index, const Case& work,
                                     const std::string& graph_file, const JobOutcome& outcome) {
  if (outcome.interrupted) return put(index, std::nullopt);
  if (outcome.status != RankStatus::ok) return put(index, result_of_outcome(work, outcome));
  const auto begin = std::chrono::steady_clock::now();
  SimulatedStep step =
      simulated_result(work, outcome, graph_file, machines_.at(work.machine), settings_.anchor);
  fs::remove(graph_file);
  report::write_case_trace(settings_.out, step.result, step.timeline);
  const auto found = outcome.reports[0].counters.find("seconds");
  const double recording = found == outcome.reports[0].counters.end() ? 0 : found->second;
  step.result.real_seconds =
      recording + std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  put(index, std::move(step.result));
}

void SimulatedRunner::search(std::size_t index) {
  const PlannedCase planned = slots_[index].planned;
  const std::string label = "search-" + std::to_string(index);
  MaxBatch max_batch(planned, kProbesPerRound, [&](const std::vector<Case>& probes) {
    std::vector<Job> jobs;
    for (const Case& probe : probes) {
      jobs.push_back(record_job(probe, graph_path(label + "-" + std::to_string(probe.batch))));
    }
    std::vector<JobOutcome> outcomes;
    runner_.run_batch(jobs, label, [&](std::size_t, JobOutcome outcome) {
      outcomes.push_back(std::move(outcome));
    });
    return outcomes;
  });
  const MaxBatchResult found = max_batch.run();
  if (found.outcome.interrupted || found.outcome.status != RankStatus::ok) {
    take_recording(index, found.work, "", found.outcome);
    return;
  }
  const std::string file = graph_path(label + "-" + std::to_string(found.work.batch));
  JobOutcome outcome = found.outcome;
  outcome.reports[0].facts.insert(found.facts.begin(), found.facts.end());
  take_recording(index, found.work, file, outcome);
}

void SimulatedRunner::put(std::size_t index, std::optional<CaseResult> result) {
  {
    const std::lock_guard lock(mutex_);
    slots_[index].interrupted = !result.has_value();
    slots_[index].result = std::move(result);
  }
  changed_.notify_all();
}

std::optional<CaseResult> SimulatedRunner::wait(std::size_t index) {
  std::unique_lock lock(mutex_);
  const Slot& slot = slots_.at(index);
  std::optional<Verification> verification;
  changed_.wait(lock, [&] {
    verification = verifications_.verdict(slot.planned.work);
    return lanes_.failure() != nullptr || slot.interrupted || (slot.result && verification);
  });
  if (!slot.interrupted && !(slot.result && verification)) std::rethrow_exception(lanes_.failure());
  if (slot.interrupted || verification->state == Verification::State::interrupted) {
    return std::nullopt;
  }
  CaseResult result = *slot.result;
  apply(*verification, result);
  return result;
}

}  // namespace bench
