// Runs a plan: verifies, records or measures every case, turns what comes back into metrics, and
// keeps results.json, samples.jsonl and the timelines up to date in the output directory, so that
// whatever ends the run, the cases that finished are there.
#pragma once

#include "bench/core/case_result.hpp"
#include "bench/plan/run_request.hpp"

#include <iosfwd>

namespace bench {

struct RunOutcome {
  RunResult result;   // as written to results.json
  int exit_code = 0;  // 0; 1: a case was wrong or failed; 130: interrupted, finished cases kept
  // --benchmark_format or --benchmark_list_tests asked Google Benchmark to write to `out`; tables
  // of ours would spoil it.
  bool out_used = false;
};

// `out` gets nothing unless --benchmark_* flags ask for it; `progress` gets lines for people.
// Throws UsageError for bad --benchmark_* flags and an unusable run to resume, MachineError when no
// worker can be started or `request.out` cannot be written.
RunOutcome run_scenario(const RunRequest& request, std::ostream& out, std::ostream& progress);

}  // namespace bench
