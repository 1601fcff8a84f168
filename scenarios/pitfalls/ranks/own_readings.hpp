// Conditions that each rank answers for itself: by its clock, or by what the model gave it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// time.time() or datetime.now() is called in it.
bool has_clock(Ref condition);

// time.time() - start > limit, also where a variable that the condition compares holds the time or
// adds it up: spent += time.time() - start.
bool reads_the_clock(const Program& program, Ref condition);

// kl > limit, after kl = (old - new).mean().item(), where new comes from the wrapped model; and
// `loss is None` of what the wrapper gave.
bool reads_an_output(const Program& program, Ref condition);

}  // namespace bench::pitfalls
