// Loaders that a helper makes with a DistributedSampler or without one, as its caller says.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// All that leads to the loop makes its loaders with get_loaders(distributed=False), and the sampler
// stands under `if distributed` of that function.
bool is_sampler_left_out(const Program& program, Ref loop, const CallRef& sampler);

}  // namespace bench::pitfalls
