#include "scenarios/pitfalls/laboratory/paired_loss.hpp"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace bench::pitfalls {

Interval paired_loss(const Json* broken, const Json* cured) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  Interval interval{kUnknown, kUnknown, kUnknown, 0};
  if (broken == nullptr || cured == nullptr) return interval;
  interval.seeds = std::min(broken->size(), cured->size());
  if (interval.seeds < 2) return interval;
  const auto count = static_cast<double>(interval.seeds);
  std::vector<double> differences;
  double sum = 0;
  for (std::size_t i = 0; i < interval.seeds; ++i) {
    differences.push_back(cured->at(i).get<double>() - broken->at(i).get<double>());
    sum += differences.back();
  }
  interval.mean = sum / count;
  double squares = 0;
  for (const double each : differences) squares += std::pow(each - interval.mean, 2);
  const boost::math::students_t student(count - 1);
  const double reach =
      boost::math::quantile(student, 0.975) * std::sqrt(squares / (count - 1) / count);
  interval.low = interval.mean - reach;
  interval.high = interval.mean + reach;
  return interval;
}

}  // namespace bench::pitfalls
