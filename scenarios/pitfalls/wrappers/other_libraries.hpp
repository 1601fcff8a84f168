// Models that are not PyTorch's, and so never behind one of its wrappers.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// def run_tflite(model, x): what it is handed is a model of another library, by the function's
// name, unless a call in sight hands it a wrapper.
bool is_of_another_library(const Program& program, Ref object);

}  // namespace bench::pitfalls
