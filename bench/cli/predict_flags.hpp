// The flags of `bench predict`: its own, and those of a scenario's settings that a simulated step
// knows.
#pragma once

#include "bench/cli/flag_parser.hpp"
#include "bench/predict/questions.hpp"

#include <vector>

namespace bench::cli {

const std::vector<Flag>& predict_flags();

// What was asked, with the defaults of what was not. Throws UsageError naming the flag.
PredictRequest parse_predict_request(const Typed& typed);

}  // namespace bench::cli
