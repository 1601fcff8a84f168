// Whether ranks draw the same numbers at random.
#pragma once

#include "diagnose/to_ddp/remaining/topics.hpp"

#include <vector>

namespace bench::diagnose {

enum class Draws : std::uint8_t { python, numpy, torch };

// The calls that every rank comes by and that seed that generator: random.seed(7),
// torch.manual_seed (7), and seed_everything(7) or set_seed(7) of what is not there, which seed all
// of them.
std::vector<CallRef> seeds_of(const Left& left, Draws draws);

// One of these, that of the script first, where all give each rank the same seed; empty otherwise.
CallRef common_seed(const Left& left, Draws draws);

}  // namespace bench::diagnose
