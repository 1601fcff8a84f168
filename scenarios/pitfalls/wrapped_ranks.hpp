// Ranks that a program shows by what it wraps.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// What a script surely wraps in DDP is wrapped in ranks, though nothing that can be followed joins
// them: another file does, or a launcher. Cells of a notebook may be left out of a run.
bool wraps_in_ranks(const Program& program);

}  // namespace bench::pitfalls::facts
