// Ranks that are started out of sight: the script wraps its model, and the file that starts it, or
// a helper under whatever name, joins the process group.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls::facts {

// DDP(model) fails outside of a group. Where nothing at hand joins one, and the program comes by
// the wrapper, something else does.
bool wraps_for_a_group_elsewhere(const Program& program);

// Whether each rank comes by what the rule is about is up to the callers, which are not at hand in
// a file that only offers functions: trainer.save(path) may be called on rank 0 only.
bool asks_callers_for_the_rank(const Program& program, std::string_view rule);

}  // namespace bench::pitfalls::facts
