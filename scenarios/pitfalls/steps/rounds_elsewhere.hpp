// Rounds of training that the program shows in part: their steps are in a file that is not at hand,
// or they are known by the collectives in which the ranks meet.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Every rank hands the wrapped model, or one that Accelerate has prepared, to a function of a file
// that is not here, whose name says that it trains.
bool trains_elsewhere(const Program& program, Ref round);

// Every rank meets the others in each round, and no way out of it is open to those that the break
// leaves behind.
bool meets_in_each(const Program& program, Ref round, Ref leaving);

}  // namespace bench::pitfalls
