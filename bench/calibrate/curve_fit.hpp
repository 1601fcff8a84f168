// Fits the efficiency curves of simulator/machine.hpp to measured points: log-log linear between
// knots, least squares over the points with outliers weighted down.
#pragma once

#include "simulator/machine.hpp"

#include <functional>
#include <vector>

namespace bench {

struct EfficiencyPoint {
  double x = 0;  // microseconds at the peak rate
  double y = 0;  // share of the peak that was reached
};

// Points in any order, x and y positive. The curve keeps the rules of machine files: y at most 1,
// and a larger operation never takes less time than a smaller one. No points give an empty curve.
simulator::EfficiencyCurve fit_efficiency(const std::vector<EfficiencyPoint>& points);

// The positive `x` between `least` and `most` where `loss` is smallest, searched on a logarithmic
// grid that is refined around its best point.
double best_positive(double least, double most, const std::function<double(double)>& loss);

double median(std::vector<double> values);  // of one value or more

}  // namespace bench
