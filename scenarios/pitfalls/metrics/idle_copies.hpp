// A figure that is copied into a tensor and reduced there, and nobody looks at the tensor.
#pragma once

#include "scenarios/pitfalls/metrics/reductions.hpp"

#include <vector>

namespace bench::pitfalls {

// shared = torch.tensor(loss); dist.all_reduce(shared); return loss: reports where the figure of
// one rank goes on.
void check_idle_copies(const Program& program, const std::vector<Reduction>& reductions,
                       Report& report);

}  // namespace bench::pitfalls
