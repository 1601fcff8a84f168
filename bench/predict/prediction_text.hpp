// Predictions for people: a table, where each step goes as bars of characters, memory, and what the
// figures were made from.
#pragma once

#include "bench/predict/prediction.hpp"

#include <string>
#include <vector>

namespace bench {

// What tells a prediction from the others of the same sweep: "DDP 8 GPUs bucket_mb:1".
std::string prediction_label(const Prediction& prediction, bool with_machine);

std::string predictions_text(const std::vector<Prediction>& predictions,
                             const std::vector<simulator::Machine>& machines,
                             const PredictRequest& request);

// "How many GPUs until it stops paying": one sentence for each series of GPU counts.
std::vector<std::string> paying_sentences(const std::vector<Prediction>& predictions);

}  // namespace bench
