#include "report/charts/stacked_areas.hpp"

#include "report/charts/axis.hpp"
#include "report/charts/stacked_bars.hpp"
#include "report/charts/svg.hpp"

#include <algorithm>

namespace bench::report {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 260;
constexpr Box kPlot{84, 10, 846, 214};
constexpr int kTicks = 5;

class Drawing {
 public:
  explicit Drawing(const StackedAreas& chart)
      : chart_(chart), below_(chart.x.size(), 0.0), svg_(kWidth, kHeight, chart.label) {
    double most = 0;
    for (std::size_t i = 0; i < chart.x.size(); ++i) {
      double sum = 0;
      for (const AreaSeries& series : chart.series) sum += series.values[i];
      most = std::max(most, sum);
    }
    y_ticks_ = binary_ticks(most, kTicks);
    x_ticks_ = nice_ticks(chart.end, kTicks);
  }

  std::string draw() {
    axes();
    std::vector<BarSeries> shown;
    for (const AreaSeries& series : chart_.series) {
      const auto is_used = [](double value) { return value > 0; };
      if (!std::any_of(series.values.begin(), series.values.end(), is_used)) continue;
      area(series);
      shown.push_back({series.title, series.css_class});
    }
    return legend(shown) + svg_.take();
  }

 private:
  double x_of(double x) const { return kPlot.x + kPlot.width * x / chart_.end; }
  double y_of(double y) const { return kPlot.y + kPlot.height * (1 - y / y_ticks_.back()); }

  void axes() {
    for (const double tick : y_ticks_) {
      svg_.line(kPlot.x, y_of(tick), kPlot.x + kPlot.width, y_of(tick), "grid");
      svg_.text(kPlot.x - 8, y_of(tick) + 4, chart_.format_y(tick), "tick", Anchor::end);
    }
    for (const double tick : x_ticks_) {
      if (tick > chart_.end) break;
      svg_.text(x_of(tick), kPlot.y + kPlot.height + 18, chart_.format_x(tick), "tick",
                Anchor::middle);
    }
  }

  // Along the upper edge, and back along the lower one.
  void area(const AreaSeries& series) {
    std::string forth;
    std::string back;
    for (std::size_t i = 0; i < chart_.x.size(); ++i) {
      const std::string begin = svg_number(x_of(chart_.x[i])) + ",";
      const std::string end =
          svg_number(x_of(i + 1 < chart_.x.size() ? chart_.x[i + 1] : chart_.end)) + ",";
      const std::string lower = svg_number(y_of(below_[i]));
      below_[i] += series.values[i];
      const std::string upper = svg_number(y_of(below_[i]));
      forth += (i == 0 ? "M" : "L") + begin + upper + "L" + end + upper;
      back.insert(0, "L" + end + lower + "L" + begin + lower);
    }
    svg_.path(forth + back + "Z", series.css_class);
  }

  const StackedAreas& chart_;
  std::vector<double> below_;  // what is stacked so far
  std::vector<double> x_ticks_;
  std::vector<double> y_ticks_;
  Svg svg_;
};

}  // namespace

std::string draw(const StackedAreas& chart) {
  return chart.x.empty() || chart.end <= 0 ? "" : Drawing(chart).draw();
}

}  // namespace bench::report
