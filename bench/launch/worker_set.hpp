// The processes of one job (or of a list of jobs that the same processes run in turn): starts them,
// listens to them, ends those that hang or are no longer of use, and accounts for every rank. After
// wait() or destruction no process is left.
#pragma once

#include "bench/launch/child_process.hpp"
#include "bench/launch/interrupt.hpp"
#include "bench/launch/line_reader.hpp"
#include "bench/launch/rank_exit.hpp"
#include "bench/launch/worker_protocol.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

struct WorkerSpec {
  int rank = 0;
  int jobs = 1;  // reports to expect
  ProcessSpec process;
};

struct WorkerLimits {
  std::chrono::milliseconds silence{120'000};  // longest gap between two signs of life
  std::chrono::milliseconds job{600'000};      // longest time from one report to the next
  std::chrono::milliseconds linger{500};       // after a failure: time for peers to tell of theirs
  std::chrono::milliseconds grace{2'000};      // between SIGTERM and SIGKILL
};

class WorkerSet {
 public:
  // Called in the waiting thread for every report as it arrives.
  using OnReport = std::function<void(int rank, int job, const RankReport&)>;

  explicit WorkerSet(WorkerLimits limits, const Interrupt* interrupt = nullptr)
      : limits_(limits), interrupt_(interrupt) {}

  // All specs are checked first (ranks 0..n-1, log directories): UsageError, nothing started.
  // A program that cannot be started is a failure of its rank, told by wait().
  void start(const std::vector<WorkerSpec>& specs);
  // Ends all ranks without blame; may be called from `on_report`.
  void stop() { begin_ending(true); }
  // Every rank accounted for, in rank order.
  std::vector<RankExit> wait(const OnReport& on_report = {});

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    std::optional<ChildProcess> process;  // empty once it has ended
    LineReader lines;
    RankExit exit;
    Clock::time_point last_sign;
    Clock::time_point job_begin;
  };
  enum class Ending : std::uint8_t { no, lingering, terminated, killed };

  bool any_alive() const;
  void listen(Worker& worker, const OnReport& on_report);
  void take_line(Worker& worker, const std::string& line, const OnReport& on_report);
  void check_ended(Worker& worker, const OnReport& on_report);
  void check_limits(Worker& worker, Clock::time_point now);
  void give_up(Worker& worker, EndKind kind, std::chrono::milliseconds limit);
  void begin_ending(bool without_linger);
  void advance_ending(Clock::time_point now);
  void signal_all(int signal);
  void check_interrupt();
  int poll_timeout_ms(Clock::time_point now) const;
  void poll_all(const OnReport& on_report);

  WorkerLimits limits_;
  const Interrupt* interrupt_;
  std::vector<Worker> workers_;
  Ending ending_ = Ending::no;
  bool interrupted_ = false;
  Clock::time_point next_step_;  // of the ending: when linger or grace is over
};

}  // namespace bench
