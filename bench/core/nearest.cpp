#include "bench/core/nearest.hpp"

#include <algorithm>
#include <utility>

namespace bench {
namespace {

// About three lines of a terminal; more names bury the one that was meant.
constexpr std::size_t kMostNamesInAMessage = 20;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_prefix(std::string_view prefix, std::string_view text) {
  return prefix.size() >= 2 && text.substr(0, prefix.size()) == prefix;
}

// Beyond a third of the longer name a match is chance, not a typing error; short names get two.
std::size_t farthest_plausible(std::string_view name, std::string_view candidate) {
  return std::max<std::size_t>(2, std::max(name.size(), candidate.size()) / 3);
}

std::string joined(std::span<const std::string> names, const char* last_separator) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last_separator : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = lower(a[i - 1]), y = lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (x == y ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y;
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> known,
                                       std::size_t limit) {
  std::vector<std::pair<std::size_t, const std::string*>> ranked;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    const bool close = distance <= farthest_plausible(name, candidate) &&
                       distance < std::max(name.size(), candidate.size());
    if (close || is_prefix(name, candidate)) ranked.emplace_back(distance, &candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [distance, candidate] : ranked) {
    if (names.size() == limit) break;
    names.push_back(*candidate);
  }
  return names;
}

std::string unknown_name_message(std::string_view what, std::string_view name,
                                 std::span<const std::string> known,
                                 std::string_view list_command) {
  std::string text = "unknown " + std::string(what) + " '" + std::string(name) + "'";
  const std::vector<std::string> near = nearest_names(name, known);
  text += near.empty() ? "; " : "; did you mean " + joined(near, " or ") + "? ";
  if (known.size() > kMostNamesInAMessage && !list_command.empty())
    return text + "`" + std::string(list_command) + "` shows all";
  return text + "known: " + (known.empty() ? "(none)" : joined(known, ", "));
}

}  // namespace bench
