// Ranks that a program shows by what it wraps: DDP(model) fails outside of a group, so where
// nothing that can be followed joins one, another file does, a helper under whatever name, or a
// launcher.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls::facts {

// A script surely wraps a model in DDP. Cells of a notebook may be left out of a run.
bool wraps_in_ranks(const Program& program);

// The file does, whether it is a script or offers functions to others, and joins no group itself.
bool wraps_for_others(const Program& program);

// Whether each rank comes by what the rule is about is up to the callers, which are not at hand in
// a file that only offers functions: trainer.save(path) may be called on rank 0 only. Not so of a
// line in the function that trains, which all ranks have to call.
bool asks_callers_for_the_rank(const Program& program, std::string_view rule, Ref where);

}  // namespace bench::pitfalls::facts
