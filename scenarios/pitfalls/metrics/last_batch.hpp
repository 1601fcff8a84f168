// Figures of the last batch alone: the loop adds nothing up, and what it set last is told below it.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// A loss or a score that the loop sets anew in each round and that the function logs, prints or
// gives back below the loop; empty where it adds something up.
MetricSum figure_of_last_batch(const Program& program, Ref loop);

}  // namespace bench::pitfalls
