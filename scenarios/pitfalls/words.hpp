// Whether a text holds one of several words: names, messages and paths say what code is for.
#pragma once

#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

namespace bench::pitfalls {

inline bool holds_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return facts::contains(text, word); });
}

// The same for words in lower case, whatever the case of the text is.
inline bool says_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return holds_any(facts::lowered(text), words);
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
