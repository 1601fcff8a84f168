#include "report/html.hpp"

#include "report/headline.hpp"

namespace bench::report {

std::string render_html(const ReportModel& model, const RenderOptions&) {
  std::string text =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>bench</title>\n";
  for (const RunResult& run : model.runs) {
    for (const std::string& sentence : headline_sentences(run)) text += "<p>" + sentence + "</p>\n";
  }
  return text + "</html>\n";
}

}  // namespace bench::report
