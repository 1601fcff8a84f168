// Equal ranks are never equally fast, and everybody waits for the slowest at every collective. A
// rank whose kernels all take longer by one factor is the last at each of them, so that simulating
// the slowest rank gives the time of all: symmetric ranks stay collapsed.
#pragma once

#include "simulator/simulate.hpp"

#include <map>

namespace bench::simulator {

// Factor on the kernels of the slowest of `ranks`; at least 1.
double slowest_rank_factor(std::int32_t ranks, const Machine& machine,
                           const SimulationOptions& options);

// Expected maximum of `count` standard normal variables.
double expected_maximum(std::int32_t count);

// How many ranks run at each speed, fastest last; what `rank_speeds` does not list runs at 1.
std::map<double, std::int32_t> ranks_by_speed(std::int32_t ranks,
                                              const std::vector<double>& rank_speeds);

}  // namespace bench::simulator
