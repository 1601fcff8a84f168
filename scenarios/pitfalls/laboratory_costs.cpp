#include "scenarios/pitfalls/laboratory_costs.hpp"

#include <algorithm>
#include <array>

namespace bench::pitfalls {
namespace {

// The part up to the separator, which is taken off `text` with it.
std::string_view take(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

}  // namespace

std::string laboratory_cost(std::string_view rule_name) {
  constexpr int kMostForms = 3;  // a finding is a few lines; `bench explain` has the rest
  std::string out;
  int forms = 0;
  std::string_view rows = laboratory_costs_csv();
  while (!rows.empty()) {
    std::string_view row = take(rows, '\n');
    if (take(row, ';') != rule_name) continue;
    const std::string_view form = take(row, ';');
    if (++forms > kMostForms) break;
    out += out.empty() ? "laboratory: " : "; ";
    out += row;
    if (!form.empty()) out += " (" + std::string(form) + ")";
  }
  return out;
}

}  // namespace bench::pitfalls
