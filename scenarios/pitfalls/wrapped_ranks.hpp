// Ranks that a program shows by what it wraps.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// What a script wraps in DDP is wrapped in ranks, though nothing in it joins them: another file
// does, or a launcher. False where the program joins a group itself.
bool wraps_in_ranks(const Program& program);

}  // namespace bench::pitfalls::facts
