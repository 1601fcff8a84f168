// The validation as a page: how good the predictions are by source, where they are weak, and every
// row. `bench validate` prints it and docs/accuracy.md holds it.
#pragma once

#include "bench/predict/validation.hpp"

#include <string>

namespace bench {

std::string validation_text(const Validation& validation);      // for a terminal
std::string validation_markdown(const Validation& validation);  // between accuracy.md's markers
std::string validation_json(const Validation& validation);

}  // namespace bench
