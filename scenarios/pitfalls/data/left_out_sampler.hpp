// Loaders that a helper makes with a DistributedSampler or without one, as its caller says.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// All that leads to the loop makes its loaders with get_loaders(distributed=False), and the sampler
// stands under `if distributed` of that function.
bool is_sampler_left_out(const Program& program, Ref loop, const CallRef& sampler);

// The loader, or the sampler it is given, is made for training only, and something else for the
// evaluation: `if split == "train":` around it, or sampler=sampler if is_train else None.
bool is_sampler_of_training(const Program& program, const CallRef& loader, const CallRef& sampler);

}  // namespace bench::pitfalls
