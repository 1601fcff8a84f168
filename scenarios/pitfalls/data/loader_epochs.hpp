// set_epoch of a loader, which is its sampler's.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// loader.set_epoch(epoch) of PyTorch's DataLoader, which has no such method.
void check_epochs_of_loaders(const Program& program, Report& report);

}  // namespace bench::pitfalls
