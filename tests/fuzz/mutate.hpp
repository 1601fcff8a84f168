// Changes a script as a fuzzer does, from a seed: bytes flipped, lines moved, names exchanged.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace bench::diagnose {

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  // Random bytes, of which most are printable.
  std::string bytes(std::size_t most);
  // One to eight changes; `other` gives lines to splice in.
  std::string mutate(std::string text, const std::string& other);

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  std::mt19937 random_;
};

}  // namespace bench::diagnose
