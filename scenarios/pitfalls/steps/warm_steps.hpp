// Whether a measurement leaves its first steps out, as distinct from a learning rate that warms up.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls {

// Text of a function or a script: some line with "warmup" that speaks of no learning rate.
bool has_warm_steps(std::string_view text);

}  // namespace bench::pitfalls
