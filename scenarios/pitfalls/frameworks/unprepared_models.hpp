// Models whose optimizer Accelerate has prepared, and which it has never seen.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The model is trained through Accelerate, which has not seen it: gradients are not reduced.
void check_unprepared_model(const Program& program, Report& report);

}  // namespace bench::pitfalls
