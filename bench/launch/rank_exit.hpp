// What became of one rank, and which of several failed ranks is to blame. With collectives this
// matters: one rank dies, and the others fail seconds later because it is gone.
#pragma once

#include "bench/core/job.hpp"
#include "bench/launch/child_process.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bench {

enum class EndKind : std::uint8_t {
  finished,     // exit code 0 and every job reported
  incomplete,   // exit code 0 but a report is missing
  failed,       // exit code other than 0
  signalled,    // killed by a signal that we did not send
  silent,       // no sign of life within the limit; ended by us
  over_time,    // the job took longer than its limit; ended by us
  ended,        // ended by us because another rank had failed
  interrupted,  // ended by us because the user asked for it
  not_started,  // the program could not be started
};
const char* end_kind_name(EndKind kind);

struct RankExit {
  int rank = 0;
  EndKind kind = EndKind::finished;
  ExitStatus status;
  std::string start_error;   // not_started: why
  std::int64_t at_ns = 0;    // when it failed, CLOCK_MONOTONIC
  int job = 0;               // the job it was in
  std::string phase;         // the last phase it told of
  double limit_seconds = 0;  // silent, over_time: the limit it broke
  int unreadable_lines = 0;  // lines on the pipe that were no messages
  std::filesystem::path log_dir;
  std::vector<std::optional<RankReport>> reports;  // one per job; nullopt = never reported

  // A rank that told of an error or ran out of memory has failed as well, whatever its exit code.
  bool reported_failure() const;
  bool good() const { return kind == EndKind::finished && !reported_failure(); }
};

// The rank whose failure came first, null when none failed. A rank that vanished (signal, exit
// without report, silence) within a second of an error that a peer reported comes before that peer:
// peers notice a closed connection before the parent can see the process end.
const RankExit* root_cause(const std::vector<RankExit>& ranks);

// "rank 2 of 4 was killed by signal 11 (Segmentation fault) in phase 'backward'; log: ...", then
// the last lines of its standard error, indented.
std::string describe_failure(const RankExit& exit, int world_size);

// The last lines of a text file, at most `lines` of them and 4 KiB; "" when there is nothing.
std::string last_lines(const std::filesystem::path& file, int lines);

}  // namespace bench
