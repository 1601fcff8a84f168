// Two losses whose forward passes of one DDP model all ran before the first backward pass: that one
// takes up what the forward passes have prepared, and the second is not reduced.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// critic(fake) in the loss of `first` and critic(real) in that of `second`, the backward passes.
// `before` and `after` are the forward passes behind the two losses.
bool is_prepared_once(const Program& program, const std::vector<diagnose::ForwardCall>& before,
                      const std::vector<diagnose::ForwardCall>& after, const CallRef& first,
                      const CallRef& second);

}  // namespace bench::pitfalls
