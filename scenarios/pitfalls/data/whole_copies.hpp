// Data sets that each rank keeps whole, in a place of its own.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// CIFAR10("data-%d" % rank, download=True): the rank is in the path alone, and each rank downloads
// all of the data there.
bool is_whole_copy(const Program& program, Ref dataset);

}  // namespace bench::pitfalls
