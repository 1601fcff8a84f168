#include "simulator/rank_jitter.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace bench::simulator {
namespace {

// The normal quantile, by bisection of erfc: exact enough and the same everywhere.
double normal_quantile(double probability) {
  constexpr int kBisections = 60;
  double low = -10;
  double high = 10;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    const bool below = 0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability;
    (below ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Distributions of the standard library differ between implementations; a quantile does not.
double drawn_maximum(std::int32_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uint64_t largest = 0;
  for (std::int32_t i = 0; i < count; ++i) largest = std::max(largest, random() >> 11);
  constexpr double kSteps = 9007199254740992.0;  // 2^53
  return normal_quantile((static_cast<double>(largest) + 0.5) / kSteps);
}

}  // namespace

double expected_maximum(std::int32_t count) {
  if (count < 2) return 0;
  // Blom's approximation, within 2 % of the exact value for every count.
  return normal_quantile((count - 0.375) / (count + 0.25));
}

std::map<double, std::int32_t> ranks_by_speed(std::int32_t ranks,
                                              const std::vector<double>& rank_speeds) {
  std::map<double, std::int32_t> classes;
  for (std::int32_t i = 0; i < ranks; ++i) {
    const auto index = static_cast<std::size_t>(i);
    ++classes[index < rank_speeds.size() ? rank_speeds[index] : 1.0];
  }
  return classes;
}

double slowest_rank_factor(std::int32_t ranks, const Machine& machine,
                           const SimulationOptions& options) {
  const double deviation = options.rank_jitter.value_or(machine.node.rank_jitter);
  double slowest = 0;
  for (const auto& [speed, count] : ranks_by_speed(ranks, options.rank_speeds)) {
    double factor = 1;
    if (count > 1) {
      const double deviations =
          options.draw_jitter ? drawn_maximum(count, options.seed) : expected_maximum(count);
      factor = std::max(1.0, 1 + deviation * deviations);
    }
    slowest = std::max(slowest, factor / speed);
  }
  return ranks < 2 ? slowest : slowest * std::max(1.0, options.straggler);
}

}  // namespace bench::simulator
