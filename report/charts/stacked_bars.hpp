// Horizontal stacked bars: one row per case or GPU, one colour per series, an optional limit line.
#pragma once

#include <string>
#include <vector>

namespace bench::report {

struct BarSeries {
  std::string title;      // legend
  std::string css_class;  // colour
};

struct BarRow {
  std::string label;
  std::vector<double> values;  // one per series
  std::string total;           // text after the bar
  bool gap_before = false;     // a little room that groups rows
};

struct StackedBars {
  std::string label;  // for screen readers
  std::vector<BarSeries> series;
  std::vector<BarRow> rows;
  double limit = 0;  // vertical dashed line; 0 = none
  std::string limit_title;
  bool binary_axis = false;                 // ticks in powers of two
  std::string (*format)(double) = nullptr;  // of ticks and tips
};

// The legend as HTML and the picture as SVG. Series that are zero everywhere are left out.
std::string draw(const StackedBars& chart);

// <ul class="legend">...</ul>
std::string legend(const std::vector<BarSeries>& series);

}  // namespace bench::report
