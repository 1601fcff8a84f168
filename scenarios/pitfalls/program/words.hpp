// Whether a text holds one of several words: names, messages and paths say what code is for.
#pragma once

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

inline bool holds_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return facts::contains(text, word); });
}

// The same for words in lower case, whatever the case of the text is.
inline bool says_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return holds_any(facts::lowered(text), words);
}

// The text holds the word in quotes.
inline bool quotes(std::string_view text, std::string_view word) {
  return facts::contains(text, "\"" + std::string(word) + "\"") ||
         facts::contains(text, "'" + std::string(word) + "'");
}

// The words of a name, in lower case: train, ddp and v for train_ddp_v2 and for trainDdpV2.
inline std::vector<std::string> words_of_name(std::string_view name) {
  std::vector<std::string> out(1);
  const auto is = [](int (*test)(int), char each) {
    return test(static_cast<unsigned char>(each)) != 0;
  };
  char before = ' ';
  for (const char each : name) {
    const bool begins = is(std::isupper, each) && is(std::islower, before);
    if ((!is(std::isalpha, each) || begins) && !out.back().empty()) out.emplace_back();
    if (is(std::isalpha, each))
      out.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    before = each;
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

// The text of an expression and of what its names are given: of join(run.dir, name) for `path`.
inline std::string text_behind(const Program& program, Ref expression) {
  std::string text(expression.text());
  if (!expression) return text;
  for (const diagnose::Source& source : program.sources(expression))
    if (source.how == diagnose::Source::How::value && source.ref != expression)
      text += " " + std::string(source.ref.text());
  return text;
}

}  // namespace bench::pitfalls
