// What a pitfall costs the model of a script: the step with it against the step without it, both
// predicted as `bench predict` would, on a machine that the user may name.
#pragma once

#include "diagnose/cost/cost.hpp"

#include <string>

namespace bench::cli {

// `machine` is --machine as typed; empty: as many V100s as the script uses, the machine that runs
// without --machine have as well. Questions that cannot be answered stay without an answer, and
// standard error says why.
diagnose::CostPredictor pitfall_cost_predictor(const std::string& machine);

}  // namespace bench::cli
