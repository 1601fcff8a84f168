#include "training/devices/communication_spans.hpp"

#include <algorithm>
#include <numeric>

namespace bench::training {
namespace {

double share_of_others(int ranks) {
  return ranks < 2 ? 0 : static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

}  // namespace

ClockReading not_after(const ClockReading& reading, const ClockReading& step_end) {
  return reading.wall_ns > step_end.wall_ns ? step_end : reading;
}

SpanTimes times_of(const std::vector<ClockReading>& readings,
                   const std::vector<CollectiveSpan>& collectives) {
  std::vector<int> change(readings.size(), 0);  // collectives on their way from this reading on
  for (const CollectiveSpan& span : collectives) {
    ++change[span.begin];
    --change[span.end];
  }
  std::vector<std::size_t> order(readings.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return readings[a].wall_ns < readings[b].wall_ns;
  });
  SpanTimes times;
  int under_way = 0;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const ClockReading& from = readings[order[i]];
    const ClockReading& to = readings[order[i + 1]];
    under_way += change[order[i]];
    const std::int64_t wall = to.wall_ns - from.wall_ns;
    // The two clocks are read one after the other, so short spans may disagree.
    const std::int64_t computed =
        std::clamp<std::int64_t>(to.processor_ns - from.processor_ns, 0, wall);
    times.compute_ns += computed;
    if (under_way == 0) continue;
    times.communication_ns += wall;
    times.exposed_ns += wall - computed;
  }
  return times;
}

double united_length(std::vector<TimeInterval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const TimeInterval& a, const TimeInterval& b) { return a.begin < b.begin; });
  double length = 0;
  double covered = intervals.empty() ? 0 : intervals.front().begin;
  for (const TimeInterval& interval : intervals) {
    const double begin = std::max(covered, interval.begin);
    if (interval.end > begin) length += interval.end - begin;
    covered = std::max(covered, interval.end);
  }
  return length;
}

std::uint64_t all_reduce_bytes(std::uint64_t payload_bytes, int ranks) {
  return static_cast<std::uint64_t>(2 * share_of_others(ranks) *
                                    static_cast<double>(payload_bytes));
}

std::uint64_t broadcast_bytes(std::uint64_t payload_bytes, int ranks) {
  return static_cast<std::uint64_t>(share_of_others(ranks) * static_cast<double>(payload_bytes));
}

}  // namespace bench::training
