// Metrics over a DistributedSampler that pads: samples it repeats are in sums over all ranks.
#pragma once

#include "scenarios/pitfalls/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// What an evaluation adds up over the batches of the loader and the ranks reduce; empty where no
// such loop is seen, where the padding is cut off or counted again, and where every usual number of
// ranks divides the data set.
MetricSum padded_metric(const Program& program, const CallRef& loader);

}  // namespace bench::pitfalls
