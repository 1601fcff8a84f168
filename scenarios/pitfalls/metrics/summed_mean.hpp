// A mean over ranks that is none: each rank adds up its batches, the sums are added over the ranks,
// and the total is divided by the number of batches of one rank.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <string>

namespace bench::pitfalls {

struct SummedMean {
  Ref division;
  std::string name;  // of what is reduced

  explicit operator bool() const { return static_cast<bool>(division); }
};

// The first in the loop's function of a sum that the loop makes: dist.all_reduce(total) below the
// loop and total / len(loader) below that. Empty where a number of ranks has to do with it.
SummedMean summed_mean(const Program& program, Ref loop);

}  // namespace bench::pitfalls
