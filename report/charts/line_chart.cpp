#include "report/charts/line_chart.hpp"

#include "report/charts/axis.hpp"
#include "report/charts/svg.hpp"

#include <algorithm>

namespace bench::report {
namespace {

constexpr double kWidth = 460;
constexpr double kHeight = 260;
constexpr double kLeft = 58;
constexpr double kRight = 92;
constexpr double kTop = 14;
constexpr double kBottom = 44;
constexpr double kLabelHeight = 14;
constexpr int kTicks = 5;

struct Scale {
  double most = 1;
  std::size_t points = 1;

  double x(std::size_t i) const {
    const double plot = kWidth - kLeft - kRight;
    return points < 2 ? kLeft + plot / 2
                      : kLeft + plot * static_cast<double>(i) / static_cast<double>(points - 1);
  }
  double y(double value) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * value / most;
  }
};

void draw_axes(const LineChart& chart, const std::vector<double>& ticks, const Scale& scale,
               Svg& svg) {
  for (const double tick : ticks) {
    svg.line(kLeft, scale.y(tick), kWidth - kRight, scale.y(tick), "grid");
    svg.text(kLeft - 8, scale.y(tick) + 4, chart.format(tick), "tick", Anchor::end);
  }
  for (std::size_t i = 0; i < chart.x.size(); ++i) {
    svg.text(scale.x(i), kHeight - kBottom + 18, chart.x[i], "tick", Anchor::middle);
  }
  svg.text((kLeft + kWidth - kRight) / 2, kHeight - 8, chart.x_title, "axistitle", Anchor::middle);
}

void draw_series(const LineChart& chart, const LineSeries& series, const Scale& scale, Svg& svg) {
  std::string path;
  bool drawing = false;
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    if (series.values[i]) {
      path += (drawing ? "L" : "M") + svg_number(scale.x(i)) + "," +
              svg_number(scale.y(*series.values[i]));
    }
    drawing = series.values[i].has_value();
  }
  svg.path(path, "line " + series.css_class);
  if (series.css_class.find("dashed") != std::string::npos) return;
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    if (!series.values[i]) continue;
    svg.circle(scale.x(i), scale.y(*series.values[i]), 3.5, "dot " + series.css_class,
               series.title + ", " + chart.x_title + " " + chart.x[i] + ": " +
                   chart.format(*series.values[i]));
  }
}

struct EndLabel {
  double x = 0;
  double y = 0;
  const LineSeries* series = nullptr;
};

// Labels at the last point of each line, pushed apart where they would overlap.
std::vector<EndLabel> end_labels(const LineChart& chart, const Scale& scale) {
  std::vector<EndLabel> labels;
  for (const LineSeries& series : chart.series) {
    for (std::size_t i = series.values.size(); i-- > 0;) {
      if (!series.values[i]) continue;
      labels.push_back({scale.x(i) + 8, scale.y(*series.values[i]) + 4, &series});
      break;
    }
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const EndLabel& a, const EndLabel& b) { return a.y < b.y; });
  for (std::size_t i = 1; i < labels.size(); ++i) {
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + kLabelHeight);
  }
  return labels;
}

}  // namespace

std::string draw(const LineChart& chart) {
  Scale scale;
  double most = 0;
  for (const LineSeries& series : chart.series) {
    for (const auto& value : series.values) most = std::max(most, value.value_or(0));
  }
  const auto ticks = nice_ticks(most, kTicks);
  scale.most = ticks.back();
  scale.points = chart.x.size();
  Svg svg(kWidth, kHeight, chart.label, "lines");
  draw_axes(chart, ticks, scale, svg);
  for (const LineSeries& series : chart.series) draw_series(chart, series, scale, svg);
  for (const EndLabel& label : end_labels(chart, scale)) {
    svg.text(label.x, label.y, label.series->title, "endlabel " + label.series->css_class);
  }
  return svg.take();
}

}  // namespace bench::report
