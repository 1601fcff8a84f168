// report.html: one offline file that is readable without JavaScript, in light and dark, and prints.
#pragma once

#include "report/renderer.hpp"

#include <string>

namespace bench::report {

std::string render_html(const ReportModel& model, const RenderOptions& options);

}  // namespace bench::report
