// Which rules run, and which of their findings are shown.
#pragma once

#include "diagnose/finding.hpp"

#include <optional>
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
  Confidence least_sure = Confidence::check;

  bool wants(const pitfalls::Rule& rule) const;
  // A finding of this severity and confidence is shown.
  bool shows(Severity severity, Confidence confidence) const {
    return severity >= at_least && confidence <= least_sure;  // certain comes first
  }
};

// Nothing where it is the name of none.
std::optional<Severity> severity_named(std::string_view name);
std::optional<Confidence> confidence_named(std::string_view name);

// One of the words means the rule.
bool any_means(const std::vector<std::string>& words, const pitfalls::Rule& rule);

// Throws UsageError that names the nearest rules when a word matches none.
void check_selection(const Selection& selection);

}  // namespace bench::diagnose
