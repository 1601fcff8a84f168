// The renderers for other programs: JSON, CSV and Markdown.
#pragma once

#include "report/renderer.hpp"

#include <string>

namespace bench::report {

std::string render_json(const ReportModel& model, const RenderOptions& options);
std::string render_csv(const ReportModel& model, const RenderOptions& options);
std::string render_markdown(const ReportModel& model, const RenderOptions& options);

}  // namespace bench::report
