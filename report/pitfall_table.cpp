#include "report/pitfall_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bench::report {
namespace {

std::string fact(const CaseResult& result, const std::string& name) {
  const auto found = result.facts.find(name);
  return found == result.facts.end() ? std::string() : found->second;
}

bool holds(const CaseResult& result, const char* verdict) { return result.metric(verdict) == 1; }

// Two significant decimals, none where the figure is whole or large.
std::string cost_text(const CaseResult& result) {
  const double cost = result.metric("cost");
  if (std::isnan(cost)) return "-";
  const bool whole = cost == std::round(cost) || std::fabs(cost) >= 1000;
  return (whole ? fmt::format("{:.0f}", cost) : fmt::format("{:.2f}", cost)) + " " +
         fact(result, "cost_unit");
}

std::string verdict_text(const CaseResult& result) {
  if (result.status != CaseStatus::done)
    return std::string(case_status_name(result.status)) + ": " + result.message;
  std::string text;
  for (const char* verdict : {"reproduced", "detected", "cured"})
    text +=
        (text.empty() ? "" : ", ") + std::string(holds(result, verdict) ? "" : "NOT ") + verdict;
  for (const char* why : {"found_in_cured_run", "cured_run"})
    if (const std::string reason = fact(result, why); !reason.empty()) text += "; " + reason;
  return text;
}

std::string without_scenario(const std::string& name) { return name.substr(name.find('/') + 1); }

}  // namespace

bool is_laboratory(const RunResult& run) {
  return std::any_of(run.cases.begin(), run.cases.end(),
                     [](const CaseResult& result) { return !result.work.pitfall.empty(); });
}

std::string laboratory_sentence(const RunResult& run) {
  const auto count = [&](const char* verdict) {
    return std::count_if(run.cases.begin(), run.cases.end(), [&](const CaseResult& result) {
      return result.status == CaseStatus::done && holds(result, verdict);
    });
  };
  double seconds = 0;
  for (const CaseResult& result : run.cases) seconds += result.real_seconds;
  return fmt::format("{} mistake{}: {} reproduced, {} detected, {} cured, in {:.0f} s.",
                     run.cases.size(), run.cases.size() == 1 ? "" : "s", count("reproduced"),
                     count("detected"), count("cured"), seconds);
}

std::vector<PitfallRow> pitfall_rows(const RunResult& run) {
  std::vector<PitfallRow> rows;
  for (const CaseResult& result : run.cases) {
    PitfallRow row;
    const std::string rule = fact(result, "rule");
    row.title = (rule.empty() ? "" : rule + " ") + without_scenario(result.name());
    row.mistake = fact(result, "mistake");
    row.seen = fact(result, "seen");
    row.cost = cost_text(result);
    row.fix = fact(result, "fix");
    row.verdict = verdict_text(result);
    row.whole = result.status == CaseStatus::done && holds(result, "reproduced") &&
                holds(result, "detected") && holds(result, "cured");
    rows.push_back(std::move(row));
  }
  return rows;
}

TextTable pitfall_table(const RunResult& run) {
  TextTable table;
  for (const char* title : {"pitfall", "mistake", "what you see", "cost", "fix", "verdict"})
    table.columns.push_back({title, /*right=*/false, /*keep=*/0, /*prose=*/true});
  for (const PitfallRow& row : pitfall_rows(run))
    table.rows.push_back({row.title, row.mistake, row.seen, row.cost, row.fix, row.verdict});
  return table;
}

}  // namespace bench::report
