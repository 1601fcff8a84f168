// Steps of the optimizer that follow backward passes inside no_sync() alone.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// optimizer.step() behind `with model.no_sync():`, which all backward passes of the step stand in:
// no pass outside of it, and nothing that sums gradients by hand. Empty where there is none.
CallRef step_without_sync(const Program& program, Ref with);

}  // namespace bench::pitfalls
