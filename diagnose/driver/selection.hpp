// Which rules run and which findings a user has silenced.
#pragma once

#include "diagnose/finding.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls {
struct Rule;
}

namespace bench::diagnose {

// Rules by id (DDP018), prefix of ids (DDP), name (missing-set-epoch) or category (throughput).
struct Selection {
  std::vector<std::string> select;  // empty: all
  std::vector<std::string> ignore;
  Severity at_least = Severity::info;

  bool wants(const pitfalls::Rule& rule) const;
};

// Throws UsageError that names the nearest rules when a word matches none.
void check_selection(const Selection& selection);

// True when the line carries `# bench: ignore[RULE] reason` for this rule, or ignore without a
// list.
bool is_silenced(std::string_view line, const Finding& finding);

}  // namespace bench::diagnose
