#include "bench/launch/job_runner.hpp"

#include "bench/core/error.hpp"
#include "bench/launch/reserved_port.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

namespace bench {
namespace {

namespace fs = std::filesystem;

int severity(RankStatus status) {
  switch (status) {
    case RankStatus::ok:
      return 0;
    case RankStatus::skip:
      return 1;
    case RankStatus::out_of_memory:
      return 2;
    case RankStatus::error:
      return 3;
  }
  return 3;
}

bool was_interrupted(const std::vector<RankExit>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankExit& exit) { return exit.kind == EndKind::interrupted; });
}

// What one job of a set came to. Only meaningful once the set has been waited for.
JobOutcome outcome_of(const std::vector<RankExit>& ranks, std::size_t job) {
  JobOutcome outcome;
  const RankExit* cause = root_cause(ranks);
  for (const RankExit& exit : ranks) {
    outcome.ends.push_back({exit.kind, exit.phase});
    if (!exit.reports[job]) continue;
    const RankReport& report = *exit.reports[job];
    outcome.reports.push_back(report);
    if (severity(report.status) <= severity(outcome.status)) continue;
    outcome.status = report.status;
    outcome.message = report.message;
  }
  const int world_size = static_cast<int>(ranks.size());
  if (was_interrupted(ranks) && outcome.reports.size() < ranks.size()) {
    outcome.interrupted = true;
    outcome.status = RankStatus::error;
    outcome.message = "interrupted";
  } else if (outcome.reports.size() < ranks.size()) {
    const bool memory = cause != nullptr && cause->reported_failure() &&
                        outcome.status == RankStatus::out_of_memory;
    if (!memory) outcome.status = RankStatus::error;
    if (cause != nullptr) outcome.message = describe_failure(*cause, world_size);
  } else if (outcome.status == RankStatus::error && world_size > 1 && cause != nullptr) {
    outcome.message = describe_failure(*cause, world_size);
  }
  return outcome;
}

// Gathers the ranks' reports of one job, while they go on with the next.
class ReportCollector {
 public:
  explicit ReportCollector(std::size_t ranks) : ranks_(ranks) {}

  void add(const RankReport& report) { reports_.push_back(report); }

  // The outcome once every rank has reported. Failures among several ranks are left to the end of
  // the set, which knows which rank was first.
  std::optional<JobOutcome> take() {
    if (reports_.size() < ranks_) return std::nullopt;
    JobOutcome outcome;
    for (const RankReport& one : reports_) {
      if (severity(one.status) <= severity(outcome.status)) continue;
      outcome.status = one.status;
      outcome.message = one.message;
    }
    if (ranks_ > 1 && severity(outcome.status) > severity(RankStatus::skip)) return std::nullopt;
    std::sort(reports_.begin(), reports_.end(),
              [](const RankReport& a, const RankReport& b) { return a.rank < b.rank; });
    outcome.reports = std::move(reports_);
    reports_.clear();
    return outcome;
  }

 private:
  std::size_t ranks_;
  std::vector<RankReport> reports_;
};

JobOutcome interrupted_outcome() { return {RankStatus::error, "interrupted", true, {}, {}}; }

// Where the ranks of a job meet; to be kept until they have ended. A single one meets nobody.
class MeetingPoint {
 public:
  explicit MeetingPoint(const Job& job) {
    if (job_process_count(job) > 1) port_.emplace();
  }
  int port() const { return port_ ? port_->number() : 0; }

 private:
  std::optional<ReservedPort> port_;
};

// Pieces that a job's batch is cut into, each computed by one device.
int pieces_of(const Job& job) {
  if (job.kind != JobKind::reference) return job.work.world_size();
  return std::max(1, static_cast<int>(job.chunks.size()) / std::max(1, job.work.accumulation));
}

// CPU threads of one rank. Ranks that run side by side share the cores. A verification and its
// reference get the same number whatever their processes: kernels add in another order when they
// are cut for another number of threads, and that difference would grow from step to step.
int threads_of(const Job& job) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const bool checked = job.kind == JobKind::verify || job.kind == JobKind::reference;
  return std::max(1, cores / (checked ? pieces_of(job) : job_process_count(job)));
}

// The user's own setting wins.
void share_cores(const std::vector<Job>& jobs,
                 std::vector<std::pair<std::string, std::string>>& environment) {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return;
  int threads = threads_of(jobs.at(0));
  for (const Job& job : jobs) threads = std::min(threads, threads_of(job));
  environment.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
}

}  // namespace

std::string log_label(const std::string& case_name) {
  std::string label = case_name;
  // ':' is refused by archive and upload tools of several CI systems.
  std::replace(label.begin(), label.end(), '/', '_');
  std::replace(label.begin(), label.end(), ':', '-');
  return label;
}

std::vector<WorkerSpec> JobRunner::specs(const std::vector<Job>& jobs, const std::string& label,
                                         int port_number) const {
  const fs::path directory = settings_.log_root / label;
  const int ranks = job_process_count(jobs.at(0));
  const std::string world = std::to_string(ranks);
  const std::string port = std::to_string(port_number);
  std::vector<WorkerSpec> result;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string text = std::to_string(rank);
    WorkerSpec spec;
    spec.rank = rank;
    spec.jobs = static_cast<int>(jobs.size());
    spec.process.argv = settings_.program;
    spec.process.argv.insert(spec.process.argv.end(),
                             {"--job", (directory / "jobs.json").string()});
    spec.process.environment = {{"RANK", text},        {"LOCAL_RANK", text},
                                {"WORLD_SIZE", world}, {"LOCAL_WORLD_SIZE", world},
                                {"MASTER_PORT", port}, {"MASTER_ADDR", "127.0.0.1"}};
    share_cores(jobs, spec.process.environment);
    spec.process.log_dir = directory / text;
    std::error_code error;
    fs::create_directories(spec.process.log_dir, error);
    if (error) throw MachineError(spec.process.log_dir.string() + ": " + error.message());
    result.push_back(spec);
  }
  write_job_file((directory / "jobs.json").string(), jobs);
  return result;
}

bool JobRunner::interrupted() const {
  return settings_.interrupt != nullptr && settings_.interrupt->requested();
}

JobOutcome JobRunner::run(const Job& job, const std::string& label) const {
  if (interrupted()) return interrupted_outcome();
  const MeetingPoint meeting(job);
  WorkerSet set(settings_.limits, settings_.interrupt);
  set.start(specs({job}, label, meeting.port()));
  return outcome_of(set.wait(), 0);
}

void JobRunner::run_batch(const std::vector<Job>& jobs, const std::string& label,
                          const OnDone& on_done) const {
  std::size_t done = 0;
  for (int round = 0; done < jobs.size() && !interrupted(); ++round) {
    const std::vector<Job> rest(jobs.begin() + static_cast<std::ptrdiff_t>(done), jobs.end());
    const std::string name = round == 0 ? label : label + "-restart" + std::to_string(round);
    const std::size_t first = done;
    const MeetingPoint meeting(rest.front());
    const auto list = specs(rest, name, meeting.port());
    std::vector<ReportCollector> collectors(rest.size(), ReportCollector(list.size()));
    WorkerSet set(settings_.limits, settings_.interrupt);
    set.start(list);
    bool tainted = false;    // an earlier job of these processes has failed
    bool untrusted = false;  // job `done` failed in tainted processes
    const auto ranks = set.wait([&](int, int job, const RankReport& report) {
      collectors[static_cast<std::size_t>(job)].add(report);
      // One rank may be jobs ahead of another; a job that was left out is found below.
      while (done < jobs.size() && !untrusted) {
        auto outcome = collectors[done - first].take();
        if (!outcome) break;
        untrusted = tainted && outcome->status == RankStatus::error;
        if (untrusted) return set.stop();
        tainted = tainted || severity(outcome->status) > severity(RankStatus::skip);
        on_done(done++, std::move(*outcome));
      }
    });
    if (untrusted) continue;
    if (done == jobs.size()) return;
    on_done(done, outcome_of(ranks, done - first));
    ++done;
  }
  while (done < jobs.size()) on_done(done++, interrupted_outcome());
}

}  // namespace bench
