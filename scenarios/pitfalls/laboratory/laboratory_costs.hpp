// What the laboratory measured, by rule: laboratory_costs.csv, which scripts/laboratory_costs
// writes from a run of `bench --scenario pitfalls`, embedded at build time.
#pragma once

#include <string>
#include <string_view>

namespace bench::pitfalls {

// "laboratory: 25 % of the GPUs' time idle (six-on-four)", of the rule's trial of that form;
// without a form, what all trials of the rule agree in. Empty where it has no such trial.
std::string laboratory_cost(std::string_view rule_name, std::string_view form = {});

// The file's content.
std::string_view laboratory_costs_csv();

}  // namespace bench::pitfalls
