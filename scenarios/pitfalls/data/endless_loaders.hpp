// Loaders that a helper goes over again and again, without an end.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// batches = inf_iterator(loader), whose sampler is never told that a pass begins.
void check_endless_loaders(const Program& program, Report& report);

}  // namespace bench::pitfalls
