// Quantiles of step times and what they are taken over.
#pragma once

#include "bench/core/case_result.hpp"

#include <vector>

namespace bench {

// Quantile q in [0, 1] by linear interpolation between order statistics (Hyndman and Fan's type 7,
// the default of R and NumPy). NaN for no values.
double quantile(std::vector<double> values, double q);

// One time per step over all ranks: a step has ended when its last rank has. Ranks without a sample
// of a step do not count; steps are in order. Repetitions follow one another.
std::vector<double> step_times_ms(const std::vector<StepSample>& samples);

SampleSummary summarize(const std::vector<double>& step_ms);

}  // namespace bench
