// Meters of an evaluation whose sums are reduced into a tensor, and that are told as they were.
#pragma once

#include "scenarios/pitfalls/metrics/reductions.hpp"

#include <vector>

namespace bench::pitfalls {

// both = torch.tensor([losses.sum, losses.count]); dist.all_reduce(both); log(epoch, losses):
// reports where the meter of one rank is told below.
void check_told_meters(const Program& program, const std::vector<Reduction>& reductions,
                       Report& report);

}  // namespace bench::pitfalls
