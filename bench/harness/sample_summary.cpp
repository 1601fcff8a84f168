#include "bench/harness/sample_summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace bench {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

std::vector<double> step_times_ms(const std::vector<StepSample>& samples) {
  std::map<int, double> by_step;
  for (const StepSample& sample : samples) {
    double& longest = by_step[sample.step];
    longest = std::max(longest, sample.wall_ms);
  }
  std::vector<double> times;
  for (const auto& [step, ms] : by_step) times.push_back(ms);
  return times;
}

SampleSummary summarize(const std::vector<double>& step_ms) {
  SampleSummary summary;
  summary.count = static_cast<std::int64_t>(step_ms.size());
  if (step_ms.empty()) return summary;
  summary.min_ms = quantile(step_ms, 0);
  summary.p10_ms = quantile(step_ms, 0.1);
  summary.p50_ms = quantile(step_ms, 0.5);
  summary.p90_ms = quantile(step_ms, 0.9);
  summary.max_ms = quantile(step_ms, 1);
  return summary;
}

}  // namespace bench
