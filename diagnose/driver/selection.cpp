#include "diagnose/driver/selection.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

bool matches(const pitfalls::Rule& rule, std::string_view word) {
  if (rule.id == word || rule.name == word || name_of(rule.category) == word) return true;
  const bool is_prefix =
      !word.empty() && word.size() < rule.id.size() &&
      std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  // DP must not select DDP, nor D everything: the prefix is the letters of an id.
  return is_prefix && rule.id.substr(0, rule.id.find_first_of("0123456789")) == word;
}

}  // namespace

std::optional<Severity> severity_named(std::string_view name) {
  for (const Severity severity : {Severity::info, Severity::warning, Severity::error})
    if (name_of(severity) == name) return severity;
  return std::nullopt;
}

std::optional<Confidence> confidence_named(std::string_view name) {
  for (const Confidence confidence : {Confidence::check, Confidence::likely, Confidence::certain})
    if (name_of(confidence) == name) return confidence;
  return std::nullopt;
}

bool any_means(const std::vector<std::string>& words, const pitfalls::Rule& rule) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return matches(rule, word); });
}

bool Selection::wants(const pitfalls::Rule& rule) const {
  return (select.empty() || any_means(select, rule)) && !any_means(ignore, rule);
}

void check_selection(const Selection& selection) {
  std::vector<std::string> known;
  for (const auto& rule : pitfalls::all_rules()) {
    known.emplace_back(rule.name);
    known.emplace_back(rule.id);
  }
  for (const auto* words : {&selection.select, &selection.ignore})
    for (const std::string& word : *words) {
      const auto rules = pitfalls::all_rules();
      if (std::any_of(rules.begin(), rules.end(),
                      [&](const auto& rule) { return matches(rule, word); }))
        continue;
      throw UsageError((words == &selection.select ? "--select: " : "--ignore: ") +
                       unknown_name_message("rule", word, known, "bench list rules"));
    }
}

}  // namespace bench::diagnose
