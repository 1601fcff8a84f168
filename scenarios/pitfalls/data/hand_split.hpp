// Random splits written by hand: a list is shuffled, or a random order drawn, and cut in two at one
// place, as in random.shuffle(paths), paths[:n] and paths[n:].
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <cstdint>
#include <vector>

namespace bench::pitfalls {

enum class DrawnBy : std::uint8_t { python, numpy, torch };

struct HandSplit {
  CallRef draw;  // random.shuffle(paths), np.random.permutation(n), torch.randperm(n)
  DrawnBy by = DrawnBy::python;
};

// Those of the program that no generator of their own draws.
std::vector<HandSplit> hand_splits(const Program& program);

}  // namespace bench::pitfalls
