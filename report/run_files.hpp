// The files of a run's directory. Every write is atomic (a temporary beside the target, renamed),
// so an interrupted run keeps what it had.
#pragma once

#include "bench/core/case_result.hpp"
#include "report/report_model.hpp"

#include "profiling/timeline.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace bench::report {

// Throws MachineError that names the file when it cannot be written.
void write_file_atomically(const std::filesystem::path& path, const std::string& bytes);
// Gzip with fixed header, so that equal input gives equal bytes.
std::string gzip(const std::string& bytes);
std::string gunzip(const std::string& bytes, const std::string& origin);  // throws UsageError

// "distributed resnet50, 4 GPUs, batch 256"
std::string case_title(const Case& work);

// Writes DIR/traces/<case>.json.gz and sets result.trace_file to its path within DIR.
void write_case_trace(const std::filesystem::path& directory, CaseResult& result,
                      const profiling::Timeline& timeline);
// The steps of timeline.json.gz of a run; with `only`, of the traces of the cases whose names hold
// it. Throws UsageError when the run has none.
std::vector<profiling::TracedStep> load_steps(const std::string& run, const std::string& only);
// After every case: DIR/results.json.
void write_results(const std::filesystem::path& directory, const RunResult& run);
// At the end: DIR/timeline.json.gz (the headline cases, from DIR/traces) and DIR/report.html.
void write_report_files(const std::filesystem::path& directory, const RunResult& run);

}  // namespace bench::report
