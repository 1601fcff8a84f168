// Lines over an ordinal axis (GPU counts, batches, bucket sizes): one line per strategy, y from
// zero.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace bench::report {

struct LineSeries {
  std::string title;
  std::string css_class;                      // "s-ddp"; dashed lines add "dashed"
  std::vector<std::optional<double>> values;  // one per x; a hole ends the line there
};

struct LineChart {
  std::string label;  // for screen readers
  std::string x_title;
  std::vector<std::string> x;
  std::vector<LineSeries> series;
  std::string (*format)(double) = nullptr;
};

// Each line is labelled at its end, so no legend is needed.
std::string draw(const LineChart& chart);

}  // namespace bench::report
