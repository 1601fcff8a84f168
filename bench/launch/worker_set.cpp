#include "bench/launch/worker_set.hpp"

#include "bench/core/error.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <set>

namespace bench {
namespace {

using Milliseconds = std::chrono::milliseconds;

std::int64_t to_ns(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

void validate(const std::vector<WorkerSpec>& specs) {
  std::set<int> ranks;
  std::set<std::filesystem::path> logs;
  for (const WorkerSpec& spec : specs) {
    if (spec.process.argv.empty()) throw UsageError("worker set: a rank has no program");
    if (!std::filesystem::is_directory(spec.process.log_dir)) {
      throw UsageError(spec.process.log_dir.string() + ": expected a directory for worker logs");
    }
    ranks.insert(spec.rank);
    logs.insert(spec.process.log_dir);
  }
  const int count = static_cast<int>(specs.size());
  if (static_cast<int>(ranks.size()) != count || logs.size() != specs.size() ||
      (count > 0 && (*ranks.begin() != 0 || *ranks.rbegin() != count - 1))) {
    throw UsageError("worker set: expected every rank from 0 to n-1 once, with logs of its own");
  }
}

}  // namespace

void WorkerSet::start(const std::vector<WorkerSpec>& specs) {
  validate(specs);
  workers_.resize(specs.size());
  for (const WorkerSpec& spec : specs) {
    Worker& worker = workers_[static_cast<std::size_t>(spec.rank)];
    worker.exit.rank = spec.rank;
    worker.exit.log_dir = spec.process.log_dir;
    worker.exit.reports.resize(static_cast<std::size_t>(spec.jobs));
    worker.last_sign = worker.job_begin = Clock::now();
    try {
      worker.process.emplace(spec.process);
    } catch (const MachineError& e) {
      worker.exit.kind = EndKind::not_started;
      worker.exit.start_error = e.what();
      worker.exit.at_ns = to_ns(Clock::now());
      begin_ending(true);
    }
  }
}

std::vector<RankExit> WorkerSet::wait(const OnReport& on_report) {
  while (any_alive()) {
    poll_all(on_report);
    check_interrupt();
    const auto now = Clock::now();
    for (Worker& worker : workers_) check_limits(worker, now);
    advance_ending(now);
  }
  std::vector<RankExit> exits;
  for (Worker& worker : workers_) exits.push_back(std::move(worker.exit));
  workers_.clear();
  return exits;
}

bool WorkerSet::any_alive() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.process.has_value(); });
}

void WorkerSet::poll_all(const OnReport& on_report) {
  std::vector<pollfd> fds;
  if (interrupt_ != nullptr && !interrupted_) fds.push_back({interrupt_->fd(), POLLIN, 0});
  for (const Worker& worker : workers_) {
    if (!worker.process) continue;
    fds.push_back({worker.process->exit_fd(), POLLIN, 0});
    // A worker that closed its pipe but lives on would make poll() return at once for ever.
    if (!worker.lines.closed()) fds.push_back({worker.process->message_fd(), POLLIN, 0});
  }
  if (::poll(fds.data(), fds.size(), poll_timeout_ms(Clock::now())) < 0 && errno != EINTR) {
    throw MachineError("poll failed while waiting for workers");
  }
  for (Worker& worker : workers_) {
    if (!worker.process) continue;
    listen(worker, on_report);
    check_ended(worker, on_report);
  }
}

int WorkerSet::poll_timeout_ms(Clock::time_point now) const {
  auto next = now + Milliseconds(60'000);
  if (ending_ == Ending::lingering || ending_ == Ending::terminated) {
    next = std::min(next, next_step_);
  }
  for (const Worker& worker : workers_) {
    if (!worker.process || ending_ != Ending::no) continue;
    next = std::min({next, worker.last_sign + limits_.silence, worker.job_begin + limits_.job});
  }
  const auto wait = std::chrono::duration_cast<Milliseconds>(next - now) + Milliseconds(1);
  return static_cast<int>(std::max<std::int64_t>(0, wait.count()));
}

void WorkerSet::listen(Worker& worker, const OnReport& on_report) {
  if (worker.lines.closed()) return;
  for (const std::string& line : worker.lines.read_from(worker.process->message_fd())) {
    take_line(worker, line, on_report);
  }
}

void WorkerSet::take_line(Worker& worker, const std::string& line, const OnReport& on_report) {
  WorkerMessage message;
  try {
    message = decode_message(line);
  } catch (const UsageError&) {
    // Garbage is no sign of life: a rank that only writes nonsense is taken for hung.
    ++worker.exit.unreadable_lines;
    return;
  }
  RankExit& exit = worker.exit;
  if (message.job < 0 || message.job >= static_cast<int>(exit.reports.size())) {
    ++exit.unreadable_lines;
    return;
  }
  // When it was sent: after a while without the processor, messages of several ranks are read at
  // once, and the time of reading would tell nothing about who fell silent first.
  const Clock::time_point sent{std::chrono::nanoseconds(message.at_ns)};
  worker.last_sign = std::clamp(sent, worker.last_sign, Clock::now());
  exit.job = message.job;
  if (message.type == WorkerMessage::Type::phase) exit.phase = message.phase;
  if (message.type != WorkerMessage::Type::report) return;
  worker.job_begin = worker.last_sign;
  exit.reports[static_cast<std::size_t>(message.job)] = message.report;
  if (on_report) on_report(exit.rank, message.job, message.report);
  const bool failed = message.report.status == RankStatus::error ||
                      message.report.status == RankStatus::out_of_memory;
  if (!failed) return;
  if (exit.at_ns == 0) exit.at_ns = message.at_ns;
  // A lone process goes on with its next job; peers of a failed rank are stuck in collectives.
  if (workers_.size() > 1) begin_ending(false);
}

void WorkerSet::check_ended(Worker& worker, const OnReport& on_report) {
  const auto status = worker.process->try_reap();
  if (!status) return;
  const int fd = worker.process->message_fd();
  do {  // what it wrote before it ended is still in the pipe
    for (const std::string& line : worker.lines.read_from(fd)) take_line(worker, line, on_report);
  } while (!worker.lines.drained());
  RankExit& exit = worker.exit;
  exit.status = *status;
  exit.unreadable_lines += worker.lines.dropped_lines();
  worker.process.reset();
  if (exit.kind != EndKind::finished) return;  // ended by us; the reason is known
  const bool complete = std::all_of(exit.reports.begin(), exit.reports.end(),
                                    [](const auto& report) { return report.has_value(); });
  if (status->signalled) {
    exit.kind = EndKind::signalled;
  } else if (status->code != 0) {
    exit.kind = EndKind::failed;
  } else if (!complete) {
    exit.kind = EndKind::incomplete;
  }
  if (exit.good()) return;
  if (exit.at_ns == 0) exit.at_ns = to_ns(Clock::now());
  begin_ending(false);
}

void WorkerSet::check_limits(Worker& worker, Clock::time_point now) {
  if (!worker.process || ending_ != Ending::no) return;
  // The rank that fell silent first is the one that hangs; its peers wait for it.
  const auto silent_first =
      std::min_element(workers_.begin(), workers_.end(), [](const Worker& a, const Worker& b) {
        if (a.process.has_value() != b.process.has_value()) return a.process.has_value();
        return a.last_sign < b.last_sign;
      });
  if (now - silent_first->last_sign >= limits_.silence) {
    give_up(*silent_first, EndKind::silent, limits_.silence);
  } else if (now - worker.job_begin >= limits_.job) {
    give_up(worker, EndKind::over_time, limits_.job);
  }
}

void WorkerSet::give_up(Worker& worker, EndKind kind, Milliseconds limit) {
  worker.exit.kind = kind;
  worker.exit.at_ns = to_ns(worker.last_sign);
  worker.exit.limit_seconds = std::chrono::duration<double>(limit).count();
  begin_ending(true);
}

void WorkerSet::begin_ending(bool without_linger) {
  if (ending_ != Ending::no) return;
  ending_ = Ending::lingering;
  next_step_ = Clock::now() + (without_linger ? Milliseconds(0) : limits_.linger);
}

void WorkerSet::advance_ending(Clock::time_point now) {
  if (now < next_step_) return;
  if (ending_ == Ending::lingering) {
    ending_ = Ending::terminated;
    next_step_ = now + limits_.grace;
    signal_all(SIGTERM);
  } else if (ending_ == Ending::terminated) {
    ending_ = Ending::killed;
    signal_all(SIGKILL);
  }
}

void WorkerSet::signal_all(int signal) {
  for (Worker& worker : workers_) {
    if (!worker.process) continue;
    if (worker.exit.kind == EndKind::finished) {
      worker.exit.kind = interrupted_ ? EndKind::interrupted : EndKind::ended;
      if (worker.exit.at_ns == 0) worker.exit.at_ns = to_ns(Clock::now());
    }
    worker.process->signal_group(signal);
  }
}

void WorkerSet::check_interrupt() {
  if (interrupt_ == nullptr || !interrupt_->requested()) return;
  if (!interrupted_) {
    interrupted_ = true;
    begin_ending(true);
    next_step_ = std::min(next_step_, Clock::now());
  } else if (interrupt_->count() > 1 && ending_ == Ending::terminated) {
    next_step_ = Clock::now();  // asked twice: no grace
  }
}

}  // namespace bench
