// Which calls a loader comes through, and whether what they pass leaves its sampler out.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// The calls of local functions through which an expression gets its value, the innermost last:
// make(training=False) and then make_set(training) for what make_set() returns.
using CallTrail = std::vector<CallRef>;

// The trails on which the iterable of a loop is this loader; empty where none can be followed.
std::vector<CallTrail> trails_to(const Program& program, Ref iterable, const CallRef& loader);

// Every trail from what a loop goes over to the loader passes constants with which the sampler is
// not made: `if distributed and training: sampler = ...` for make(training=False).
bool is_left_out_on_every_trail(const Program& program, Ref iterable, const CallRef& loader,
                                const CallRef& sampler);

}  // namespace bench::pitfalls
