// A loop that trains a model which nothing has wrapped, in a program that wraps another.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The loss of a backward pass in the function comes from a model that is made in sight and is no
// wrapper, or from the one inside a wrapper, and from no other: nothing is reduced.
bool trains_bare_model(const Program& program, const diagnose::TrainingLoop& loop,
                       const diagnose::FunctionRef& function);

}  // namespace bench::pitfalls
