// JSON forms of Case, Job and RankReport. Unknown keys are ignored, missing keys keep the default,
// so that recordings of an older version still load.
#pragma once

#include "bench/core/job.hpp"

#include <string>

namespace bench {

std::string case_to_json(const Case& work);
Case case_from_json(const std::string& text);  // throws UsageError on malformed text
std::string job_to_json(const Job& job);
Job job_from_json(const std::string& text);  // throws UsageError
std::string report_to_json(const RankReport& report);
RankReport report_from_json(const std::string& text);  // throws UsageError

}  // namespace bench
