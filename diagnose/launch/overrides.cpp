#include "diagnose/launch/overrides.hpp"

#include "diagnose/config/config_entry.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace bench::diagnose {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool same_letter(char a, char b) {
  return a == b || ((a == '-' || a == '_') && (b == '-' || b == '_'));
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  return at;
}

// The word at a place, without quotes: 1, "none", $CLIP.
Value value_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kQuotes = "\"'`";
  while (at < text.size() && kQuotes.find(text[at]) != kQuotes.npos) ++at;
  const std::size_t end = std::min(text.find_first_of(" \t\r\n\"'`,;)}|&#", at), text.size());
  constexpr std::size_t kLongestWord = 128;  // of a value that a condition is about
  if (end - at > kLongestWord) return {};
  const std::string word(text.substr(at, end - at));
  if (word.find_first_of("$({<[") != std::string::npos || word.empty()) return {};
  return value_of_scalar(word);
}

// --grad-clip 1, and --debug without a value.
Value value_of_option(std::string_view text, std::size_t at) {
  const std::size_t next = skip_blanks(text, at);
  const bool ends = next >= text.size() || next == at || text[next] == '-' || text[next] == '\\' ||
                    text[next] == '\n' || text[next] == '\r';
  if (!ends) return value_at(text, next);
  Value flag;
  flag.type = Value::Type::boolean;
  flag.integer = 1;
  return flag;
}

// What follows the key that ends at `end`, where it is given something.
std::optional<Value> given_at(std::string_view text, std::size_t begin, std::size_t end) {
  const bool is_option = begin >= 2 && text.substr(begin - 2, 2) == "--";
  const bool is_part = begin >= 1 && text[begin - 1] == '.';
  std::size_t at = end;
  while (at < text.size() && (text[at] == '"' || text[at] == '\'' || text[at] == ']')) ++at;
  const std::size_t sign = skip_blanks(text, at);
  const char next = sign < text.size() ? text[sign] : '\n';
  if (next == '=' && text.substr(sign, 2) != "==")
    return value_at(text, skip_blanks(text, sign + 1));
  if (next == ':') return value_at(text, skip_blanks(text, sign + 1));
  if (is_option) return value_of_option(text, at);
  if (is_part && sign > at && next != '\n') return value_at(text, sign);
  return std::nullopt;
}

}  // namespace

std::vector<Value> overrides_in(std::string_view text, std::string_view key) {
  std::vector<Value> out;
  constexpr std::size_t kMostValues = 256;
  auto from = text.begin();
  while (!key.empty() && out.size() < kMostValues) {
    const auto found = std::search(from, text.end(), key.begin(), key.end(), same_letter);
    if (found == text.end()) break;
    const auto begin = static_cast<std::size_t>(found - text.begin());
    const std::size_t end = begin + key.size();
    from = found + 1;
    const bool starts = begin == 0 || !is_word(text[begin - 1]);
    const bool ends = end == text.size() || (!is_word(text[end]) && text[end] != '-');
    if (!starts || !ends) continue;
    if (auto value = given_at(text, begin, end)) out.push_back(std::move(*value));
  }
  return out;
}

}  // namespace bench::diagnose
