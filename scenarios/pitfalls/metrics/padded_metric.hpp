// Metrics over a DistributedSampler that pads: samples it repeats are in sums over all ranks.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// An evaluation over a loader with the sampler, and what it adds up.
struct PaddedMetric {
  CallRef sampler;
  MetricSum sum;
  CallRef loader = {};
  bool is_loss = false;  // nothing but losses is averaged
};

// Those that the ranks reduce. Left out are programs that cut the padding off or count again, and
// data sets that every usual number of ranks divides.
std::vector<PaddedMetric> padded_metrics(const Program& program);

}  // namespace bench::pitfalls
