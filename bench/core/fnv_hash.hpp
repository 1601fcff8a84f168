// FNV-1a with 64 bits: names and fingerprints that are the same on every machine and in every
// version of the program. It tells things apart; it defends against nobody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bench {

class FnvHash {
 public:
  void add(unsigned char byte) { value_ = (value_ ^ byte) * kPrime; }
  void add(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
  }

  std::uint64_t value() const { return value_; }
  // Sixteen lower-case hexadecimal digits.
  std::string hex() const {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(value_ >> shift) & 15U];
    return text;
  }

 private:
  // Constants of the hash's authors, http://www.isthe.com/chongo/tech/comp/fnv/.
  static constexpr std::uint64_t kOffsetBasis = 0xcbf29ce484222325;
  static constexpr std::uint64_t kPrime = 0x100000001b3;

  std::uint64_t value_ = kOffsetBasis;
};

// The hash of `text` in hexadecimal digits.
inline std::string fnv_hex(std::string_view text) {
  FnvHash hash;
  hash.add(text);
  return hash.hex();
}

}  // namespace bench
