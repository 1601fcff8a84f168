#include "bench/harness/batch_search.hpp"

#include <algorithm>

namespace bench {
namespace {

// Batches in units of the multiple, so that every whole number is a candidate.
struct Units {
  std::int64_t multiple;

  std::int64_t up(std::int64_t batch) const { return (batch + multiple - 1) / multiple; }
  std::int64_t down(std::int64_t batch) const { return batch / multiple; }
  std::vector<std::int64_t> batches(const std::vector<std::int64_t>& units) const {
    std::vector<std::int64_t> result;
    for (const std::int64_t unit : units) result.push_back(unit * multiple);
    return result;
  }
};

std::vector<std::int64_t> doubling(std::int64_t lowest, std::int64_t highest) {
  std::vector<std::int64_t> points;
  for (std::int64_t unit = lowest; unit < highest; unit *= 2) points.push_back(unit);
  points.push_back(highest);
  return points;
}

// Up to `count` whole numbers strictly between the bounds, evenly spread.
std::vector<std::int64_t> between(std::int64_t low, std::int64_t high, int count) {
  std::vector<std::int64_t> points;
  for (int i = 1; i <= count; ++i) {
    const std::int64_t point = low + (high - low) * i / (count + 1);
    if (point > low && point < high && (points.empty() || point > points.back())) {
      points.push_back(point);
    }
  }
  // With bounds this close the division above may miss the only candidate.
  if (points.empty() && high - low > 1) points.push_back(low + 1);
  return points;
}

}  // namespace

BatchBounds largest_fitting_batch(const BatchSearch& search, int probes_per_round,
                                  const LeadingFits& leading_fits) {
  const Units units{std::max<std::int64_t>(1, search.multiple)};
  std::int64_t low = std::max<std::int64_t>(1, units.up(search.lowest));
  const std::int64_t highest = std::max(low, units.down(search.highest));
  std::vector<std::int64_t> points = doubling(low, highest);
  std::size_t fitting = leading_fits(units.batches(points));
  if (fitting == 0) return {0, low * units.multiple};
  if (fitting == points.size()) return {highest * units.multiple, 0};
  low = points[fitting - 1];
  std::int64_t high = points[fitting];
  while (high - low > 1) {
    points = between(low, high, probes_per_round);
    fitting = leading_fits(units.batches(points));
    if (fitting < points.size()) high = points[fitting];
    if (fitting > 0) low = points[fitting - 1];
  }
  return {low * units.multiple, high * units.multiple};
}

}  // namespace bench
