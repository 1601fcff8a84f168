#include "scenarios/pitfalls/laboratory/run_evidence.hpp"

#include "scenarios/pitfalls/registry.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace bench::pitfalls {

RunEvidence::RunEvidence(Json document)
    : document_(std::move(document)), ranks_(document_.value("ranks", Json::array())) {}

std::vector<Json> RunEvidence::of_every_rank(std::string_view key) const {
  std::vector<Json> values;
  for (const Json& rank : ranks_) {
    const auto found = rank.find(key);
    if (found == rank.end()) return {};
    values.push_back(*found);
  }
  return values;
}

const Json* RunEvidence::first(std::string_view key) const {
  for (const Json& rank : ranks_)
    if (const auto found = rank.find(key); found != rank.end()) return &*found;
  return nullptr;
}

double RunEvidence::number(std::string_view key) const {
  const Json* value = first(key);
  const bool known = value != nullptr && (value->is_number() || value->is_boolean());
  if (!known) return std::numeric_limits<double>::quiet_NaN();
  return value->is_boolean() ? (value->get<bool>() ? 1 : 0) : value->get<double>();
}

std::string RunEvidence::text(std::string_view key) const {
  const Json* value = first(key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::string RunEvidence::error_with(std::string_view part) const {
  for (const Json& rank : ranks_) {
    const std::string error = rank.value("error", std::string());
    if (error.find(part) != std::string::npos) return error;
  }
  return {};
}

std::vector<int> RunEvidence::hung_ranks() const {
  std::vector<int> hung;
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    if (ranks_[i].value("end", std::string()) == "silent") hung.push_back(static_cast<int>(i));
  return hung;
}

Finding& RunReport::add(Confidence confidence, std::string message) {
  Finding finding = finding_of(rule_, confidence, std::move(message));
  finding.file = run_.name();
  out_.push_back(std::move(finding));
  return out_.back();
}

std::vector<Finding> judge_run(const RunEvidence& run) {
  std::vector<Finding> findings;
  for (const Rule& rule : all_rules()) {
    if (rule.judge == nullptr) continue;
    RunReport report(rule, run, findings);
    rule.judge(run, report);
  }
  return findings;
}

bool ranks_agree(const std::vector<Json>& values) {
  return std::ranges::all_of(values, [&](const Json& value) { return value == values.front(); });
}

std::string listed(const Json& array) {
  std::string text;
  for (const Json& item : array)
    text += (text.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
  return text;
}

std::string figure(double value, int decimals) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) decimals = 0;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

}  // namespace bench::pitfalls
