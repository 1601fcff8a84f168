// How often each rule was broken, for --statistics.
#include "diagnose/output/render.hpp"

#include <algorithm>
#include <map>

namespace bench::diagnose {

std::string render_statistics(const std::vector<Finding>& findings, const RenderContext& context) {
  struct Row {
    std::size_t count = 0;
    std::string rule;
    std::string name;
  };
  std::map<std::string, Row> by_rule;
  for (const Finding& finding : findings) {
    Row& row = by_rule[finding.rule];
    row = {row.count + 1, finding.rule, finding.name};
  }
  std::vector<Row> rows;
  std::size_t widest = 0;
  for (auto& [rule, row] : by_rule) {
    widest = std::max(widest, rule.size());
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.count > b.count; });
  const std::size_t digits = rows.empty() ? 0 : std::to_string(rows.front().count).size();
  std::string out;
  for (const Row& row : rows) {
    const std::string count = std::to_string(row.count);
    out += std::string(digits - count.size(), ' ') + count + "  " + row.rule +
           std::string(widest - row.rule.size(), ' ') + "  " + row.name + "\n";
  }
  return out + (rows.empty() ? "" : "\n") + text_summary(findings, context);
}

}  // namespace bench::diagnose
