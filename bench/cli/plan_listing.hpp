// A plan as text, one line for each case: what `--dry-run` prints.
#pragma once

#include "bench/plan/plan.hpp"

#include <string>

namespace bench::cli {

std::string plan_listing(const Plan& plan);

}  // namespace bench::cli
