#include "diagnose/syntax/trigrams.hpp"

namespace bench::diagnose {
namespace {

constexpr std::size_t kLength = 3;

}  // namespace

Trigrams::Trigrams(std::string_view text) {
  for (std::size_t at = 0; at + kLength <= text.size(); ++at) seen_.set(place(text.data() + at));
}

bool Trigrams::may_hold(std::string_view word) const {
  for (std::size_t at = 0; at + kLength <= word.size(); ++at)
    if (!seen_.test(place(word.data() + at))) return false;
  return true;
}

}  // namespace bench::diagnose
