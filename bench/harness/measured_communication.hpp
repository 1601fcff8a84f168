// What communication costs a measured case: the shares of the step and the breakdown of each rank,
// from the samples of all timed steps. The definitions are those of profiling/analysis.hpp.
#pragma once

#include "bench/core/case_result.hpp"
#include "bench/launch/job_runner.hpp"

#include <vector>

namespace bench {

// Adds compute_busy, comm_exposed, comm_overlap, idle_gpu<i> and a breakdown as far as the samples
// of `repetitions` have them, and the fact "all_reduces". Needs the quantiles of `result`.
void add_measured_communication(CaseResult& result, const std::vector<JobOutcome>& repetitions);

}  // namespace bench
