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

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Where the line's comment begins: the first # that stands in no string. npos without one.
std::size_t comment_of(std::string_view line) {
  char quote = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '\\')
      ++at;
    else if (quote != 0)
      quote = c == quote ? char{0} : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '#')
      return at;
  }
  return quote != 0 ? line.find('#') : std::string_view::npos;  // an apostrophe: it's
}

bool lists(std::string_view words, const Finding& finding) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    if (trimmed(word) == finding.rule || trimmed(word) == finding.name) return true;
  }
  return false;
}

// What follows `bench: ignore`: nothing or a reason for all rules, [A, B] for these. Another word
// that begins like it (ignored, ignore-next-line) is no mark.
bool mark_holds(std::string_view rest, const Finding& finding) {
  if (!rest.empty() && rest.front() != ' ' && rest.front() != '[') return false;
  rest = trimmed(rest);
  if (!rest.starts_with('[')) return true;
  return lists(rest.substr(1, rest.find(']') - 1), finding);
}

}  // namespace

bool is_silenced(std::string_view line, const Finding& finding) {
  constexpr std::string_view kMark = "bench: ignore";
  std::size_t hash = comment_of(line);
  while (hash != std::string_view::npos) {
    const std::string_view comment = trimmed(line.substr(hash + 1));
    if (comment.starts_with(kMark) && mark_holds(comment.substr(kMark.size()), finding))
      return true;
    hash = line.find('#', hash + 1);
  }
  return false;
}

}  // namespace bench::diagnose
