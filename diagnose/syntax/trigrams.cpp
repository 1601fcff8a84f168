#include "diagnose/syntax/trigrams.hpp"

namespace bench::diagnose {
namespace {

constexpr std::size_t kLength = 3;

}  // namespace

// What place() is of the characters so far goes on with the next: older ones leave at the top.
Trigrams::Trigrams(std::string_view text) {
  std::uint32_t place = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    place = ((place << kShift) ^ static_cast<unsigned char>(text[at])) % kBits;
    if (at + 1 >= kLength) seen_[place] = true;
  }
}

bool Trigrams::may_hold(std::string_view word) const {
  for (std::size_t at = 0; at + kLength <= word.size(); ++at)
    if (!seen_.test(place(word.data() + at))) return false;
  return true;
}

}  // namespace bench::diagnose
