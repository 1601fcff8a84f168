// results.json: Google Benchmark's JSON, so that its tools read it, with one extra object "bench"
// per case that holds what its flat counters cannot (status, memory by category, phases, the case
// itself). Reading it back gives the RunResult that was written.
#pragma once

#include "bench/core/case_result.hpp"

#include <string>

namespace bench {

// The version of the layout of our own keys; a reader refuses a newer one.
inline constexpr int kResultsSchemaVersion = 1;

std::string run_to_json(const RunResult& run);
// Throws UsageError that names `origin` (a file) on malformed text or a newer schema.
RunResult run_from_json(const std::string& text, const std::string& origin);
// Reads DIR/results.json, or a results.json itself. Throws UsageError.
RunResult load_run(const std::string& directory_or_file);

}  // namespace bench
