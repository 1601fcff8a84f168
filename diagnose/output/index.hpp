// The index of all rules as Markdown (docs/rules.md) and as rows for `bench list rules`.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

std::string rules_index();

// What a rule is decided from: "script, run (partly)".
std::string evidence_of(const pitfalls::Rule& rule);

struct RuleRow {
  std::string id;
  std::string name;
  std::string summary;  // severity, category, evidence
};
std::vector<RuleRow> rule_rows();

}  // namespace bench::diagnose
