// The index of all rules as Markdown (docs/rules.md) and as rows for `bench list rules`.
#pragma once

#include <string>
#include <vector>

namespace bench::diagnose {

std::string rules_index();

struct RuleRow {
  std::string id;
  std::string name;
  std::string summary;  // severity, category, evidence
};
std::vector<RuleRow> rule_rows();

}  // namespace bench::diagnose
