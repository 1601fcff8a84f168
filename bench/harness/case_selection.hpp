// Which cases of a plan run when --benchmark_filter picks some of them: the picked ones, and the
// single-device runs whose throughput theirs is divided by.
#pragma once

#include "bench/harness/gbench_flags.hpp"
#include "bench/plan/plan.hpp"

#include <cstddef>
#include <vector>

namespace bench {

struct CaseSelection {
  std::vector<std::size_t> shown;       // asked for; indices into plan.cases
  std::vector<std::size_t> references;  // run only because a shown case needs them
};

// Throws UsageError when the filter picks nothing.
CaseSelection select_cases(const Plan& plan, const std::string& filter);

}  // namespace bench
