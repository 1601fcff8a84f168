// The largest batch that fits, found in few rounds: first by doubling, then by cutting the interval
// into several parts at once, because probes that share a worker process cost little each.
#pragma once

#include "bench/plan/plan.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace bench {

// How many batches of an ascending list fit, counted from its front up to the first that does not.
using LeadingFits = std::function<std::size_t(const std::vector<std::int64_t>&)>;

struct BatchBounds {
  std::int64_t fits = 0;          // largest batch that fits; 0 = not even the lowest
  std::int64_t does_not_fit = 0;  // smallest batch that does not; 0 = even the highest does
};

// Batches are multiples of search.multiple. `probes_per_round` is 1 where every probe is expensive.
BatchBounds largest_fitting_batch(const BatchSearch& search, int probes_per_round,
                                  const LeadingFits& leading_fits);

}  // namespace bench
