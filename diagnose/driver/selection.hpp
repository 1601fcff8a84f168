// Which rules run.
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

// One of the words means the rule.
bool any_means(const std::vector<std::string>& words, const pitfalls::Rule& rule);

// Throws UsageError that names the nearest rules when a word matches none.
void check_selection(const Selection& selection);

}  // namespace bench::diagnose
