// Cases as Google Benchmark benchmarks: registered at run time, one iteration each, time set by
// hand. The library gives flags, repetitions and output formats; the steps run in workers.
#pragma once

#include "bench/core/case_result.hpp"
#include "bench/harness/gbench_flags.hpp"

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct BenchmarkCase {
  std::string name;  // unique
  // Runs the case, again for every repetition; nullopt: interrupted.
  std::function<std::optional<CaseResult>()> run;
};

// Runs all cases. Writes to `out` when flags.format asks for it, and to flags.out_file.
// Throws UsageError for a flag whose value the library refuses, MachineError for an out file that
// cannot be written.
void run_benchmarks(const BenchmarkFlags& flags, const std::vector<BenchmarkCase>& cases,
                    const RunContext& context, std::ostream& out);

}  // namespace bench
