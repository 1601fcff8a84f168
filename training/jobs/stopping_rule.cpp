#include "training/jobs/stopping_rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace bench::training {

double median_half_width(std::span<const double> samples) {
  constexpr std::size_t kLeast = 6;  // 1 - 2 * 0.5^6 = 0.97; five samples reach only 0.94
  constexpr double kZ = 1.96;        // normal approximation of the binomial at 95 %
  if (samples.size() < kLeast) return std::numeric_limits<double>::infinity();
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  const double reach = kZ * std::sqrt(count) / 2;
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(count / 2 - reach)));
  const auto high = std::min(sorted.size() - 1, static_cast<std::size_t>(count / 2 + reach));
  const double median = sorted[sorted.size() / 2];
  if (median <= 0) return std::numeric_limits<double>::infinity();
  return (sorted[high] - sorted[low]) / 2 / median;
}

bool enough_samples(const StoppingRule& rule, std::span<const double> step_ms) {
  const double seconds = std::accumulate(step_ms.begin(), step_ms.end(), 0.0) / 1000;
  if (seconds >= rule.max_seconds) return true;
  if (seconds < rule.min_seconds) return false;
  if (step_ms.size() < static_cast<std::size_t>(rule.min_samples)) return false;
  return median_half_width(step_ms) <= rule.half_width;
}

}  // namespace bench::training
