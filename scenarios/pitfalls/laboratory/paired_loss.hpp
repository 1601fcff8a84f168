// What a mistake loses over several seeds: the mean of paired differences with its 95 % interval.
// A single seed says nothing about an effect that is smaller than the spread between seeds.
#pragma once

#include "scenarios/pitfalls/laboratory/run_evidence.hpp"

namespace bench::pitfalls {

struct Interval {
  double mean = 0;
  double low = 0;
  double high = 0;
  std::size_t seeds = 0;
};

// Of cured minus broken, seed by seed; NaN where there are fewer than two pairs. The interval is
// Student's t for paired differences (Student, "The probable error of a mean", Biometrika 1908).
Interval paired_loss(const Json* broken, const Json* cured);

}  // namespace bench::pitfalls
