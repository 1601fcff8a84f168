#include "bench/core/units.hpp"

#include <cmath>
#include <cstdio>

namespace bench {
namespace {

// Three significant digits, as tables show figures.
std::string three_digits(double value) {
  char text[32];
  const double magnitude = std::fabs(value);
  const int decimals = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes < kKiB) return std::to_string(bytes) + " B";
  if (bytes < kMiB) return three_digits(value / kKiB) + " KiB";
  if (bytes < kGiB) return three_digits(value / kMiB) + " MiB";
  return three_digits(value / kGiB) + " GiB";
}

std::string format_duration_ns(std::int64_t ns) {
  const double value = static_cast<double>(ns);
  if (std::fabs(value) < 1e3) return std::to_string(ns) + " ns";
  if (std::fabs(value) < 1e6) return three_digits(value / 1e3) + " us";
  if (std::fabs(value) < 1e9) return three_digits(value / 1e6) + " ms";
  return three_digits(value / 1e9) + " s";
}

std::string format_count(double value) {
  if (value < 1e3) return three_digits(value);
  if (value < 1e6) return three_digits(value / 1e3) + " k";
  if (value < 1e9) return three_digits(value / 1e6) + " M";
  return three_digits(value / 1e9) + " G";
}

}  // namespace bench
