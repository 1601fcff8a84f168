// Data sets that draw at random for ever: there is no pass over the data that ranks could share
// out.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The data set's __iter__ goes on for ever and draws at random, itself or through the iterators
// that it is made of, and nothing seeds the ranks alike: each draws samples of its own.
bool draws_its_own_samples(const Program& program, Ref dataset);

}  // namespace bench::pitfalls
