// What a run says about itself: once per run, before any case.
#pragma once

#include "bench/core/case_result.hpp"
#include "bench/plan/run_request.hpp"

#include <string>

namespace bench {

// Throws UsageError when the plan's machine is unknown.
RunContext make_run_context(const RunRequest& request);

// 16 hexadecimal digits of FNV-1a, 64 bit (Fowler, Noll and Vo): a short name for a setting, not a
// protection.

}  // namespace bench
