#include "scenarios/pitfalls/laboratory/laboratory_costs.hpp"

#include <algorithm>

namespace bench::pitfalls {
namespace {

// The part up to the separator, which is taken off `text` with it.
std::string_view take(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

}  // namespace

std::string laboratory_cost(std::string_view rule_name, std::string_view form) {
  std::string_view cost;
  std::string_view rows = laboratory_costs_csv();
  while (!rows.empty()) {
    std::string_view row = take(rows, '\n');
    if (take(row, ';') != rule_name) continue;
    const std::string_view of = take(row, ';');
    if (!form.empty() && of != form) continue;
    if (!cost.empty() && cost != row) return {};  // the trials are of different mistakes
    cost = row;
  }
  if (cost.empty()) return {};
  return "laboratory: " + std::string(cost) + (form.empty() ? "" : " (" + std::string(form) + ")");
}

}  // namespace bench::pitfalls
