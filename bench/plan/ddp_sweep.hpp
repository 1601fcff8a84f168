// The variants of one case: every combination of the DDP options that a scenario sweeps, each with
// the name parts that tell it from the others.
#pragma once

#include "bench/core/case.hpp"
#include "bench/plan/settings.hpp"

#include <vector>

namespace bench {

// At least one case. An option becomes part of the name where it is swept or not PyTorch's default.
// Options that do not reach the case (another strategy, no accumulation) are not varied.
std::vector<Case> ddp_variants(const Case& work, const Settings& settings);

}  // namespace bench
