// Epochs that are told to a sampler which the loader does not draw from.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// if hasattr(loader.sampler, "set_epoch"): loader.sampler.set_epoch(epoch), where the loader is
// given a batch_sampler: PyTorch makes another .sampler for it, and the DistributedSampler inside
// the batch sampler never hears of the epoch.
void check_unreached_samplers(const Program& program, Report& report);

}  // namespace bench::pitfalls
