#include "bench/predict/prediction_html.hpp"

#include "bench/core/embedded_text.hpp"
#include "bench/predict/prediction_text.hpp"
#include "report/charts/axis.hpp"
#include "report/charts/stacked_bars.hpp"
#include "report/charts/svg.hpp"

#include <fmt/format.h>

#include <span>

namespace bench {
namespace report {
std::span<const EmbeddedText> style_sheets();  // generated from report/style.css
}

namespace {

constexpr std::size_t kMostMemoryCharts = 8;

std::string chart(const std::vector<Prediction>& predictions, bool with_machine) {
  report::StackedBars bars;
  bars.label = "Simulated time of a step by what it is spent on";
  bars.series = {{"compute", "b-compute"},
                 {"exposed communication", "b-comm"},
                 {"exposed copies", "b-copy"},
                 {"host", "b-host"},
                 {"idle", "b-idle"}};
  bars.format = report::axis_ms;
  for (const Prediction& p : predictions) {
    if (!p.has_figures()) continue;
    bars.rows.push_back(
        {prediction_label(p, with_machine),
         {p.compute_ms, p.exposed_communication_ms, p.exposed_copy_ms, p.host_ms, p.idle_ms},
         report::axis_ms(p.step_ms),
         false});
  }
  return bars.rows.empty() ? "" : draw(bars);
}

// The first ones of a long sweep: a page of charts that differ in little helps nobody.
std::string memory_charts(const std::vector<Prediction>& predictions, bool with_machine) {
  std::string charts;
  std::size_t drawn = 0;
  for (const Prediction& p : predictions) {
    const std::string chart = memory_page(p, prediction_label(p, with_machine));
    if (!chart.empty() && drawn++ < kMostMemoryCharts) charts += chart;
  }
  if (charts.empty()) return "";
  std::string heading =
      "<h2>Memory in use on the primary GPU while the host issues the step</h2>\n";
  if (drawn > kMostMemoryCharts) {
    heading += fmt::format("<p>The first {} of {}.</p>\n", kMostMemoryCharts, drawn);
  }
  return heading + charts;
}

}  // namespace

std::string predictions_html(const std::vector<Prediction>& predictions,
                             const std::vector<simulator::Machine>& machines,
                             const PredictRequest& request) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<title>Prediction</title>\n<style>\n";
  for (const EmbeddedText& sheet : report::style_sheets()) page += sheet.text;
  page += "</style>\n</head>\n<body>\n<main>\n<h1>SIMULATED: predictions, not measurements</h1>\n";
  page += "<h2>Where the step goes</h2>\n" + chart(predictions, machines.size() > 1);
  page += memory_charts(predictions, machines.size() > 1);
  page += "<h2>Figures</h2>\n<pre>" +
          report::escape_html(predictions_text(predictions, machines, request)) + "</pre>\n";
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace bench
