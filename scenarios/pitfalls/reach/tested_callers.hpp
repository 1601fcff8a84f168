// Tests of the rank in the callers of a function.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// Some ways to the node test the rank and others do not; which of them a run takes is not known.
bool some_caller_tests_rank(const Program& program, Ref node);

// A helper of a file that others use, save_model(path), which neither trains nor wraps: what calls
// it is not at hand, and mostly tests the rank.
bool is_left_to_callers(const Program& program, Ref node);

}  // namespace bench::pitfalls::facts
