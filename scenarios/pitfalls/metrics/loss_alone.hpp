// Evaluations whose figure over all ranks is a loss and nothing else: a rough check, which a sample
// that counts twice hardly changes. Counts, scores and predictions are more than that.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// Of the sums of the loop that the ranks reduce; `sum` is the one that is known to be.
bool reduces_losses_alone(const Program& program, Ref loop, const MetricSum& sum,
                          const std::vector<Reduction>& reductions);

}  // namespace bench::pitfalls
