// What passes between the parent and a worker process. A worker is started as
//     PROGRAM --job FILE
// where FILE holds one Job or a JSON array of Jobs, which it runs in order. It answers on the pipe
// whose descriptor number is in BENCH_REPORT_FD, one JSON object a line: the phase it is in, signs
// of life, and one RankReport per job. Without a pipe the lines go to standard output, so that a
// worker can be run by hand. This file is LibTorch-free; bench-worker and `bench worker` share it.
//
// Conduct of a worker:
//   - it calls phase() at every change and heartbeat() at least once a second of work (per step):
//     a rank that is silent for longer than the parent's limit is taken for hung and ended;
//   - it reports every job, also a failed one (status error or out_of_memory with the exception's
//     text), and goes on with the next; only where peers may be stuck in a collective (WORLD_SIZE
//     above 1) does it stop after a failure, with exit code 1;
//   - it ends with exit code 0 once every job has been reported, whatever their status.
#pragma once

#include "bench/core/job.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

inline constexpr const char* kReportFdVariable = "BENCH_REPORT_FD";
inline constexpr const char* kParentPidVariable = "BENCH_PARENT_PID";

// Processes that the parent starts for a job. Ranks of a `distributed` case are symmetric, so its
// shape recording needs one process only: there WORLD_SIZE is 1 while the case has more GPUs, and
// the worker records rank 0 over a process group of case.world_size() whose peers are imagined.
int job_process_count(const Job& job);

struct WorkerMessage {
  enum class Type : std::uint8_t { phase, heartbeat, report };
  Type type = Type::heartbeat;
  int job = 0;             // index into the job file
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC, comparable between the processes of one machine
  std::string phase;       // type phase
  RankReport report;       // type report
};

// One line without the newline. decode throws UsageError on anything that is not a message.
std::string encode_message(const WorkerMessage& message);
WorkerMessage decode_message(const std::string& line);

// The jobs of a job file; throws UsageError naming the file.
std::vector<Job> read_job_file(const std::string& path);
void write_job_file(const std::string& path, const std::vector<Job>& jobs);

// Place of this process in the job, from RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,
// MASTER_ADDR and MASTER_PORT; where RANK is not set, from what Slurm and Open MPI set.
// Defaults to a world of one. Throws UsageError naming the variable that makes no sense.
struct RankContext {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int local_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
};
RankContext rank_context_from_environment();

// Worker side: asks the kernel to kill this process when its parent dies, so that a killed parent
// leaves nothing behind. Call first in main(); does nothing when run by hand.
void die_with_parent();

// Worker side of the pipe. Every call may come from any thread; calls are one short write.
class WorkerChannel {
 public:
  static std::unique_ptr<WorkerChannel> from_environment();
  explicit WorkerChannel(int fd) : fd_(fd) {}

  void begin_job(int index);              // later messages belong to this job
  void phase(std::string_view name);      // "init", "warm-up", "step 3: backward", ...
  void heartbeat();                       // rate-limited: cheap enough for every step
  void report(const RankReport& report);  // the answer to the current job

 private:
  struct State;
  void send(WorkerMessage message);

  int fd_;
  std::shared_ptr<State> state_ = make_state();
  static std::shared_ptr<State> make_state();
};

// The path after --job in a worker's arguments; throws UsageError when there is none.
std::string job_file_argument(int argc, char** argv);

}  // namespace bench
