// A made-up run for golden files: round figures from a toy cost model, every status, names that
// need escaping, and timelines of one DataParallel and one DistributedDataParallel step.
#pragma once

#include "report/report_model.hpp"

namespace bench::report {

ReportModel sample_report();
// A sweep without DP beside DDP, measured, everything finished.
ReportModel sample_sweep();
// Nothing finished.
ReportModel sample_failure();

}  // namespace bench::report
