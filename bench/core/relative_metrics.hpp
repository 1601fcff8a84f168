// Metrics that compare a case with the single-device runs beside it. They need the whole run, so
// they are filled in after the cases they refer to; calling again after every case is cheap.
#pragma once

#include "bench/core/case_result.hpp"

#include <vector>

namespace bench {

// Sets speedup_vs_single and scaling_efficiency (see metric_catalog.cpp) on every finished case
// whose single-device reference is finished, too. References match in model, data, optimizer,
// accumulation and execution; tags do not matter.
void add_relative_metrics(std::vector<CaseResult>& cases);

}  // namespace bench
