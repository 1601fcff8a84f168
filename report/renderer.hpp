// A renderer turns a report model into bytes. Files, colours' availability and terminals are the
// caller's business. registry.cpp lists them all.
#pragma once

#include "report/report_model.hpp"

#include <span>
#include <string>
#include <string_view>

namespace bench::report {

struct RenderOptions {
  bool color = false;      // ANSI colours; never set when not a terminal or NO_COLOR is set
  int width = 120;         // columns of the terminal; every column of a table fits into 120
  bool show_files = true;  // end with where the files are
};

struct Renderer {
  std::string_view name;         // --format NAME
  std::string_view description;  // for help
  std::string (*render)(const ReportModel&, const RenderOptions&);
};

std::span<const Renderer> renderers();
const Renderer* find_renderer(std::string_view name);  // null when unknown

// Colour and width of standard output: plain when it is not a terminal or NO_COLOR is set.
RenderOptions standard_output_options();

}  // namespace bench::report
