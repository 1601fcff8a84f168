#include "scenarios/pitfalls/steps/warm_steps.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <cctype>
#include <set>
#include <string>

namespace bench::pitfalls {

namespace {

bool is_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// warmup_steps for any place in it.
std::string word_around(std::string_view text, std::size_t at) {
  std::size_t begin = at;
  std::size_t end = at;
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  while (end < text.size() && is_letter(text[end])) ++end;
  return std::string(text.substr(begin, end - begin));
}

// The line, and the two below one that asks: if step < warmup_steps: rate = base * step.
std::string_view lines_from(std::string_view text, std::size_t at) {
  constexpr int kLines = 3;
  const std::size_t begin = text.rfind('\n', at) + 1;
  const std::size_t first = text.find_first_not_of(' ', begin);
  const bool asks =
      text.substr(first).starts_with("if ") || text.substr(first).starts_with("elif ");
  if (!asks) return text.substr(begin, text.find('\n', at) - begin);
  std::size_t end = at;
  for (int line = 0; line < kLines && end != std::string_view::npos; ++line)
    end = text.find('\n', end + 1);
  return text.substr(begin, end == std::string_view::npos ? end : end - begin);
}

bool speaks_of_rate(std::string_view lines) {
  return says_any(lines, {"lr_", "_lr", " lr", "lr=", "'lr'", "\"lr\"", "sched", "learning",
                          "ratio", "factor", "cosine", "anneal", "decay"});
}

}  // namespace

bool has_warm_steps(std::string_view text) {
  std::set<std::string> of_rate;
  std::set<std::string> others;
  for (const std::string_view spelling : {"warmup", "warm_up"})
    for (std::size_t at = text.find(spelling); at != std::string_view::npos;
         at = text.find(spelling, at + 1)) {
      const std::string word = word_around(text, at);
      const bool is_of_rate = speaks_of_rate(word) || speaks_of_rate(lines_from(text, at));
      (is_of_rate ? of_rate : others).insert(word);
    }
  for (const std::string& word : of_rate) others.erase(word);
  return !others.empty();
}

}  // namespace bench::pitfalls
