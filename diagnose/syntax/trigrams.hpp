// Which runs of three characters a text has. Rules ask each file for some two hundred words, most
// of which it does not have: that is told from here without a search of the text.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bench::diagnose {

class Trigrams {
 public:
  Trigrams() = default;
  explicit Trigrams(std::string_view text);

  // False only where the text surely does not hold the word.
  bool may_hold(std::string_view word) const;

 private:
  // Of 300 lines about 2,500 differ, so that one bit in ten is taken; each three characters of a
  // word have to meet one.
  static constexpr std::size_t kBits = std::size_t{1} << 15;
  // Letters differ in their low five bits: that keeps apart what three letters say.
  static constexpr unsigned kShift = 5;

  static std::size_t place(const char* at) {
    const auto of = [&](int i) {
      return static_cast<std::uint32_t>(static_cast<unsigned char>(at[i]));
    };
    return ((of(0) << 2 * kShift) ^ (of(1) << kShift) ^ of(2)) % kBits;
  }

  std::bitset<kBits> seen_;
};

}  // namespace bench::diagnose
