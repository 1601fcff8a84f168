// Directories of a run that every rank makes, and that may not be there before.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/to_ddp/reached_code.hpp"

#include <vector>

namespace bench::diagnose {

// exist_ok = run_id == ""; out.mkdir(exist_ok=exist_ok): the second rank raises FileExistsError
// where the test fails. Findings whose fix allows what another rank has made.
std::vector<Finding> directories_to_allow(const ReachedCode& reached);

}  // namespace bench::diagnose
