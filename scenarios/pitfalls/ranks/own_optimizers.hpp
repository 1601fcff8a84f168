// Optimizers of what one rank alone has.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The optimizer is made for tensors, or for the parameters of a network, that only the ranks which
// a test of the rank leads there have made: no other rank could step it.
bool has_own_parameters(const Program& program, const CallRef& optimizer);

}  // namespace bench::pitfalls
