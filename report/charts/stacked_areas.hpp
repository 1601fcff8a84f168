// Amounts over time, stacked: each value lasts until the next one, as memory in use does.
#pragma once

#include <string>
#include <vector>

namespace bench::report {

struct AreaSeries {
  std::string title;           // legend
  std::string css_class;       // colour
  std::vector<double> values;  // one per x
};

struct StackedAreas {
  std::string label;      // for screen readers
  std::vector<double> x;  // where values begin, ascending
  double end = 0;         // where the last one ends
  std::vector<AreaSeries> series;
  std::string (*format_x)(double) = nullptr;
  std::string (*format_y)(double) = nullptr;
};

// The legend as HTML and the picture as SVG. Series that are zero everywhere are left out; the y
// axis has ticks in powers of two, because the amounts are bytes.
std::string draw(const StackedAreas& chart);

}  // namespace bench::report
