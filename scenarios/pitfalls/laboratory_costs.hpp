// What the laboratory measured, by rule: laboratory_costs.csv, which scripts/laboratory_costs
// writes from a run of `bench --scenario pitfalls`, embedded at build time.
#pragma once

#include <string>
#include <string_view>

namespace bench::pitfalls {

// "laboratory: 25 % of the GPUs' time idle (six-on-four)"; empty where it has no trial of the rule.
std::string laboratory_cost(std::string_view rule_name);

// The file's content.
std::string_view laboratory_costs_csv();

}  // namespace bench::pitfalls
