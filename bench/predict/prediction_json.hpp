// Predictions as JSON: every figure, its error band and where the machine's figures come from.
#pragma once

#include "bench/predict/prediction.hpp"

#include <string>
#include <vector>

namespace bench {

std::string predictions_json(const std::vector<Prediction>& predictions,
                             const std::vector<simulator::Machine>& machines,
                             const PredictRequest& request);

}  // namespace bench
