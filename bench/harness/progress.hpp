// What a user sees while a run goes on: on a terminal one line that moves, elsewhere plain lines.
#pragma once

#include "bench/core/case_result.hpp"

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <string>

namespace bench {

class Progress {
 public:
  Progress(std::ostream& out, bool terminal, std::size_t total);

  void note(const std::string& line);
  void waiting_for(const std::string& name);
  void finished(const CaseResult& result);
  void end();

 private:
  void clear_line();

  std::ostream& out_;
  bool terminal_;
  std::size_t total_;
  std::size_t done_ = 0;
  bool line_shown_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// One case as a line: name, then its step time or why it has none.
std::string progress_line(const CaseResult& result);

}  // namespace bench
