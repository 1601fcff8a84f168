#include "bench/launch/rank_exit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace bench {
namespace {

constexpr const char* kEndKinds[] = {"finished",  "incomplete",  "failed",
                                     "signalled", "silent",      "over_time",
                                     "ended",     "interrupted", "not_started"};
constexpr std::int64_t kPeerNoticesFirstNs = 1'000'000'000;
constexpr int kLogLines = 6;
constexpr std::streamoff kTailBytes = 4096;

const RankReport* failed_report(const RankExit& exit) {
  for (const auto& report : exit.reports) {
    if (report &&
        (report->status == RankStatus::error || report->status == RankStatus::out_of_memory)) {
      return &*report;
    }
  }
  return nullptr;
}

bool vanished(const RankExit& exit) {
  if (exit.reported_failure()) return false;
  return exit.kind == EndKind::signalled || exit.kind == EndKind::failed ||
         exit.kind == EndKind::incomplete || exit.kind == EndKind::not_started;
}

bool failed_by_itself(const RankExit& exit) {
  return !exit.good() && (exit.reported_failure() ||
                          (exit.kind != EndKind::ended && exit.kind != EndKind::interrupted));
}

std::string how_it_ended(const RankExit& exit) {
  if (const RankReport* report = failed_report(exit)) {
    const bool memory = report->status == RankStatus::out_of_memory;
    return fmt::format("{}: {}", memory ? "ran out of memory" : "failed", report->message);
  }
  switch (exit.kind) {
    case EndKind::finished:
      return "finished";
    case EndKind::incomplete:
      return "ended without a report";
    case EndKind::failed:
      return "ended with " + exit.status.text();
    case EndKind::signalled:
      return "was killed by " + exit.status.text();
    case EndKind::silent:
      return fmt::format("hung: no sign of life for {:g} s", exit.limit_seconds);
    case EndKind::over_time:
      return fmt::format("did not finish within {:g} s", exit.limit_seconds);
    case EndKind::ended:
      return "was ended because another rank had failed";
    case EndKind::interrupted:
      return "was interrupted";
    case EndKind::not_started:
      return "did not start: " + exit.start_error;
  }
  return "";
}

}  // namespace

const char* end_kind_name(EndKind kind) { return kEndKinds[static_cast<int>(kind)]; }

bool RankExit::reported_failure() const { return failed_report(*this) != nullptr; }

const RankExit* root_cause(const std::vector<RankExit>& ranks) {
  const RankExit* first = nullptr;
  for (const RankExit& exit : ranks) {
    if (!failed_by_itself(exit)) continue;
    if (first == nullptr || exit.at_ns < first->at_ns) first = &exit;
  }
  if (first == nullptr || !first->reported_failure()) return first;
  const RankExit* earliest_vanished = nullptr;
  for (const RankExit& exit : ranks) {
    if (!vanished(exit) || exit.at_ns > first->at_ns + kPeerNoticesFirstNs) continue;
    if (earliest_vanished == nullptr || exit.at_ns < earliest_vanished->at_ns) {
      earliest_vanished = &exit;
    }
  }
  return earliest_vanished != nullptr ? earliest_vanished : first;
}

std::string describe_failure(const RankExit& exit, int world_size) {
  std::string text = world_size > 1 ? fmt::format("rank {} of {} ", exit.rank, world_size)
                                    : std::string("the worker ");
  text += how_it_ended(exit);
  if (!exit.phase.empty()) text += fmt::format(" (in phase '{}')", exit.phase);
  if (exit.unreadable_lines > 0) {
    text += fmt::format("; {} unreadable lines on its report pipe", exit.unreadable_lines);
  }
  const std::filesystem::path log = exit.log_dir / "stderr.log";
  text += "; log: " + log.string();
  std::istringstream tail(last_lines(log, kLogLines));
  for (std::string line; std::getline(tail, line);) text += "\n    " + line;
  return text;
}

std::string last_lines(const std::filesystem::path& file, int lines) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  std::size_t begin = text.size();
  for (int i = 0; i < lines && begin != 0 && begin != std::string::npos; ++i) {
    begin = text.rfind('\n', begin - 1);
  }
  return begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
}

}  // namespace bench
