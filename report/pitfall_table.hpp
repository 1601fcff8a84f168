// The result of the pitfall laboratory as a table to show in class: the mistake, what one sees,
// what it costs, the fix. Terminal, Markdown and HTML show the same rows.
#pragma once

#include "bench/core/case_result.hpp"
#include "report/text_table.hpp"

#include <string>
#include <vector>

namespace bench::report {

// True where the run's cases are trials of the laboratory rather than points of a sweep.
bool is_laboratory(const RunResult& run);

// "5 mistakes: 5 reproduced, 5 detected, 5 cured, in 12 s."
std::string laboratory_sentence(const RunResult& run);

struct PitfallRow {
  std::string title;  // "DDP018 missing-set-epoch"
  std::string mistake;
  std::string seen;
  std::string cost;
  std::string fix;
  std::string verdict;  // "reproduced, detected, cured", or what is missing
  bool whole = false;
};
std::vector<PitfallRow> pitfall_rows(const RunResult& run);

TextTable pitfall_table(const RunResult& run);

}  // namespace bench::report
