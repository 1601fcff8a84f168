// What set_epoch is called with, where it is the same in every epoch.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// 0, an option such as args.seed, or a name that is given a value once and never another one:
// epoch = start, no epoch += 1.
bool never_changes(const Program& program, Ref epoch);

}  // namespace bench::pitfalls
