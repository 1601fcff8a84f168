// The report on a terminal: what the run answers, then tables, then what did not run, then files.
#pragma once

#include "report/renderer.hpp"

#include <string>

namespace bench::report {

std::string render_terminal(const ReportModel& model, const RenderOptions& options);

}  // namespace bench::report
