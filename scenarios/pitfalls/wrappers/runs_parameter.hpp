// Functions of the program that run the forward pass of a model that they are given.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// losses(ddp.module, x) of a function that calls that parameter, or a method of it that runs
// layers. `behind` is what the loss of the backward pass is computed by; calls that evaluate, that
// hand over a frozen model, or whose wrapper something else trains through are left out.
std::vector<CallRef> handed_to_runners(const Program& program, const std::vector<Ref>& behind,
                                       const CallRef& backward);

}  // namespace bench::pitfalls
