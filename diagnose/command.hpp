// The subcommands of this room: `bench diagnose` and `bench explain`.
#pragma once

#include "diagnose/cost/cost.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

// Makes what answers `--cost`, given --machine as typed (empty: the default). Called only then.
using CostPredictorFactory = std::function<CostPredictor(const std::string& machine)>;

int diagnose_command(const std::vector<std::string>& arguments,
                     const CostPredictorFactory& cost_predictor);
int explain_command(const std::vector<std::string>& arguments);

}  // namespace bench::diagnose
