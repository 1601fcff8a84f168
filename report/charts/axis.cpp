#include "report/charts/axis.hpp"

#include "bench/core/units.hpp"

#include <cmath>

namespace bench::report {
namespace {

constexpr double kNsPerMs = 1e6;

std::vector<double> multiples(double step, double most) {
  std::vector<double> ticks{0};
  while (ticks.back() < most * (1 - 1e-9))
    ticks.push_back(step * static_cast<double>(ticks.size()));
  return ticks;
}

}  // namespace

std::vector<double> nice_ticks(double most, int wanted) {
  if (!(most > 0) || !std::isfinite(most)) return {0, 1};
  const double rough = most / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return multiples(factor * power, most);
  }
  return multiples(10 * power, most);
}

std::vector<double> binary_ticks(double most_bytes, int wanted) {
  if (!(most_bytes > 0) || !std::isfinite(most_bytes)) return {0, 1};
  return multiples(std::exp2(std::ceil(std::log2(most_bytes / wanted) - 1e-9)), most_bytes);
}

std::string axis_ms(double ms) {
  return ms == 0 ? "0" : format_duration_ns(std::llround(ms * kNsPerMs));
}

std::string axis_bytes(double bytes) {
  return bytes == 0 ? "0" : format_bytes(static_cast<std::uint64_t>(bytes));
}

}  // namespace bench::report
