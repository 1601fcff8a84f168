// What renderers draw: one or several runs, and the timelines of the cases worth comparing.
#pragma once

#include "bench/core/case_result.hpp"

#include "profiling/chrome_trace.hpp"

#include <string>
#include <vector>

namespace bench::report {

struct ReportModel {
  std::vector<RunResult> runs;
  std::vector<profiling::TracedStep> timelines;  // of the first run's headline cases; may be empty
  std::vector<std::string> files;                // of the first run, within its directory
  std::string directory;  // where the files of the first run are; may be empty
};

// A run that just ended: what its directory holds is listed, timelines are not read back.
ReportModel finished_report(RunResult run, const std::string& directory);
// Reads results.json (and timeline.json.gz where there is one) of each run's directory.
// Throws UsageError that names the file.
ReportModel load_report(const std::vector<std::string>& run_directories);

}  // namespace bench::report
