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

bool any_match(const std::vector<std::string>& words, const pitfalls::Rule& rule) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return matches(rule, word); });
}

}  // namespace

bool Selection::wants(const pitfalls::Rule& rule) const {
  return (select.empty() || any_match(select, rule)) && !any_match(ignore, rule);
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

bool is_silenced(std::string_view line, const Finding& finding) {
  constexpr std::string_view kMark = "bench: ignore";
  const std::size_t hash = line.find('#');
  if (hash == std::string_view::npos) return false;
  const std::size_t mark = line.find(kMark, hash);
  if (mark == std::string_view::npos) return false;
  std::string_view rest = line.substr(mark + kMark.size());
  if (!rest.starts_with('[')) return true;
  rest = rest.substr(1, rest.find(']') - 1);
  while (!rest.empty()) {
    std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (word == finding.rule || word == finding.name) return true;
  }
  return false;
}

}  // namespace bench::diagnose
