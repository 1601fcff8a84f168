// Where a program lets one rank alone evaluate.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// if rank == 0: evaluate(loader), for the loop in evaluate() over what that loader gives: the first
// such call that hands it the loader, or the only one. The loop itself where the rank is tested
// around it, or no one call can be named.
Ref place_of_choice(const Program& program, Ref loop, const CallRef& loader);

}  // namespace bench::pitfalls
