// Where ranks have to wait for a file of rank 0.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"

#include <vector>

namespace bench::diagnose {

// torch.load(best) of every rank below a save that rank 0 alone makes now: findings whose fix puts
// a barrier above the load. Only where all ranks surely come by it.
std::vector<Finding> waits_for_saved(const Program& rewritten);

}  // namespace bench::diagnose
