// When a measurement has enough steps: the median is known well enough, or the time is used up.
#pragma once

#include <span>

namespace bench::training {

struct StoppingRule {
  double min_seconds = 1.0;
  double max_seconds = 30.0;
  int min_samples = 10;
  // Half width of the median's 95 % confidence interval, as a fraction of the median.
  double half_width = 0.01;
};

// Half width of the distribution-free 95 % confidence interval of the median (order statistics of
// the binomial distribution), divided by the median. Infinite for fewer than six samples, which
// have no such interval.
double median_half_width(std::span<const double> samples);

bool enough_samples(const StoppingRule& rule, std::span<const double> step_ms);

}  // namespace bench::training
