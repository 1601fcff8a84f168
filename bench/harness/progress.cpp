#include "bench/harness/progress.hpp"

#include "bench/core/units.hpp"

#include <fmt/format.h>

#include <cmath>
#include <ostream>

namespace bench {
namespace {

std::string step_text(const CaseResult& result) {
  const double ms = result.metric("step_ms_p50");
  if (std::isnan(ms)) return "no time";
  return format_duration_ns(std::llround(ms * 1e6)) + (result.simulated ? " (simulated)" : "");
}

// A trial of the laboratory: "reproduced, detected, not cured".
std::string verdict_text(const CaseResult& result) {
  std::string text;
  for (const char* verdict : {"reproduced", "detected", "cured"})
    text += (text.empty() ? "" : ", ") + std::string(result.metric(verdict) == 1 ? "" : "not ") +
            verdict;
  return text;
}

}  // namespace

std::string progress_line(const CaseResult& result) {
  switch (result.status) {
    case CaseStatus::done:
      if (!result.work.pitfall.empty()) return result.name() + "  " + verdict_text(result);
      return result.name() + "  " + step_text(result);
    case CaseStatus::skipped:
      return result.name() + "  skipped: " + result.message;
    case CaseStatus::wrong:
      return result.name() + "  WRONG: " + result.message;
    case CaseStatus::failed:
      return result.name() + "  FAILED: " + result.message;
  }
  return result.name();
}

Progress::Progress(std::ostream& out, bool terminal, std::size_t total)
    : out_(out), terminal_(terminal), total_(total) {}

void Progress::clear_line() {
  if (line_shown_) out_ << "\r\033[K";
  line_shown_ = false;
}

void Progress::note(const std::string& line) {
  clear_line();
  out_ << line << "\n";
  out_.flush();
}

void Progress::waiting_for(const std::string& name) {
  if (!terminal_) return;
  const auto seconds = std::chrono::steady_clock::now() - begin_;
  clear_line();
  out_ << fmt::format("[{}/{}] {:.0f} s  {}", done_, total_,
                      std::chrono::duration<double>(seconds).count(), name);
  out_.flush();
  line_shown_ = true;
}

void Progress::finished(const CaseResult& result) {
  ++done_;
  // On a terminal only trouble stays on the screen; the tables come at the end.
  const bool trouble = result.status == CaseStatus::wrong || result.status == CaseStatus::failed;
  if (terminal_ && !trouble) return;
  note(fmt::format("[{}/{}] {}", done_, total_, progress_line(result)));
}

void Progress::end() {
  clear_line();
  out_.flush();
}

}  // namespace bench
