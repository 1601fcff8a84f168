// Predictions as one offline page: where each step goes as bars, the table, memory and provenance.
#pragma once

#include "bench/predict/prediction.hpp"

#include <string>
#include <vector>

namespace bench {

std::string predictions_html(const std::vector<Prediction>& predictions,
                             const std::vector<simulator::Machine>& machines,
                             const PredictRequest& request);

}  // namespace bench
