// How the learning rate of one rank comes to the others.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Learning rates come to the other ranks in another way: they are written into the groups of
// parameters, or the state of the optimizer is sent in the loop.
bool hands_learning_rate_on(const Program& program);

}  // namespace bench::pitfalls
