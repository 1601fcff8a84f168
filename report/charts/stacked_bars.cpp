#include "report/charts/stacked_bars.hpp"

#include "report/charts/axis.hpp"
#include "report/charts/svg.hpp"

#include <algorithm>
#include <numeric>

namespace bench::report {
namespace {

constexpr double kWidth = 960;
constexpr double kCharacterWidth = 6.8;  // of the label font, on the wide side
constexpr double kLeastLabelWidth = 96;
constexpr double kTotalWidth = 78;
constexpr double kBarHeight = 17;
constexpr double kRowHeight = 24;
constexpr double kTextRise = 4.5;  // from the bottom of a bar to the base line of its text
constexpr double kGroupGap = 12;
constexpr double kTop = 8;
constexpr double kAxisHeight = 26;
constexpr int kTicks = 5;

double row_total(const BarRow& row) {
  return std::accumulate(row.values.begin(), row.values.end(), 0.0);
}

bool used(const StackedBars& chart, std::size_t series) {
  return std::any_of(chart.rows.begin(), chart.rows.end(),
                     [&](const BarRow& row) { return row.values[series] > 0; });
}

double chart_height(const StackedBars& chart) {
  double height = kTop + kAxisHeight;
  for (const BarRow& row : chart.rows) height += kRowHeight + (row.gap_before ? kGroupGap : 0);
  return height;
}

// Where bars begin: right of the longest label.
double label_width(const StackedBars& chart) {
  double width = kLeastLabelWidth;
  for (const BarRow& row : chart.rows) {
    width = std::max(width, kCharacterWidth * static_cast<double>(row.label.size()) + 14);
  }
  return width;
}

void draw_axis(const StackedBars& chart, const std::vector<double>& ticks, double bottom,
               Svg& svg) {
  const double left = label_width(chart);
  const double plot = kWidth - left - kTotalWidth;
  for (const double tick : ticks) {
    const double x = left + plot * tick / ticks.back();
    svg.line(x, kTop - 4, x, bottom, "grid");
    svg.text(x, bottom + 16, chart.format(tick), "tick", Anchor::middle);
  }
}

void draw_row(const StackedBars& chart, const BarRow& row, double y, double scale, Svg& svg) {
  const double left = label_width(chart);
  svg.text(left - 10, y + kBarHeight - kTextRise, row.label, "rowlabel", Anchor::end);
  double x = left;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const double width = row.values[i] * scale;
    if (width <= 0) continue;
    svg.rect({x, y, width, kBarHeight}, chart.series[i].css_class,
             row.label + ", " + chart.series[i].title + ": " + chart.format(row.values[i]));
    x += width;
  }
  svg.text(x + 8, y + kBarHeight - kTextRise, row.total, "value");
}

}  // namespace

std::string legend(const std::vector<BarSeries>& series) {
  std::string html = "<ul class=\"legend\">";
  for (const BarSeries& s : series) {
    html +=
        "<li><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect width=\"12\" height=\"12\" "
        "class=\"" +
        s.css_class + "\"/></svg>" + escape_html(s.title) + "</li>";
  }
  return html + "</ul>\n";
}

std::string draw(const StackedBars& chart) {
  double most = chart.limit;
  for (const BarRow& row : chart.rows) most = std::max(most, row_total(row));
  const auto ticks = chart.binary_axis ? binary_ticks(most, kTicks) : nice_ticks(most, kTicks);
  const double height = chart_height(chart);
  const double bottom = height - kAxisHeight;
  const double left = label_width(chart);
  const double scale = (kWidth - left - kTotalWidth) / ticks.back();

  Svg svg(kWidth, height, chart.label);
  draw_axis(chart, ticks, bottom, svg);
  double y = kTop;
  for (const BarRow& row : chart.rows) {
    if (row.gap_before) y += kGroupGap;
    draw_row(chart, row, y, scale, svg);
    y += kRowHeight;
  }
  if (chart.limit > 0) {
    const double x = left + chart.limit * scale;
    svg.line(x, kTop - 4, x, bottom, "limit");
    svg.text(x - 5, kTop + 4, chart.limit_title, "limittext", Anchor::end);
  }
  std::vector<BarSeries> shown;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    if (used(chart, i)) shown.push_back(chart.series[i]);
  }
  return legend(shown) + svg.take();
}

}  // namespace bench::report
