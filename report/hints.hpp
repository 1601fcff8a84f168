// What stands out in a run, as sentences that are certain: arithmetic on its figures, no guesses at
// causes. A new hint is a function and a row of the table in hints.cpp.
#pragma once

#include "bench/core/case_result.hpp"

#include <string>
#include <vector>

namespace bench::report {

std::vector<std::string> hints(const RunResult& run);

}  // namespace bench::report
