// Metrics of torchmetrics: what they add up is each rank's own, and compute() reduces it over all
// ranks of the process group.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Made by a class of torchmetrics, and not told to keep to its rank.
bool is_torchmetric(const Program& program, Ref object);

// Metrics of MONAI, and Metric("loss") of Horovod's examples where its file is out of sight: they
// ask the other ranks for what those have added up.
bool reduces_by_itself(const Program& program, Ref object);

// metric.compute() of such an object, unless it was told not to: a collective.
bool reduces_on_compute(const Program& program, const CallRef& call);

}  // namespace bench::pitfalls
