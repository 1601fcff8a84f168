// What a step's clock readings say about its communication. Plain arithmetic on plain numbers, so
// that it is tested with made-up readings.
#pragma once

#include <cstdint>
#include <vector>

namespace bench::training {

// One reading of both clocks: wall time, and the processor time of the thread that trains.
struct ClockReading {
  std::int64_t wall_ns = 0;
  std::int64_t processor_ns = 0;
};

// A collective that was issued at readings[begin] and had ended at readings[end].
struct CollectiveSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct SpanTimes {
  std::int64_t compute_ns = 0;
  std::int64_t communication_ns = 0;
  std::int64_t exposed_ns = 0;
};

// The reading, or the step's end where a callback took it later: who waited for the collective had
// its result by then.
ClockReading not_after(const ClockReading& reading, const ClockReading& step_end);

// `readings` in any order; the first and the last in time bound the step. Between two readings in a
// row, the thread computed for as long as its processor clock says; while a collective was on its
// way, the rest is exposed.
SpanTimes times_of(const std::vector<ClockReading>& readings,
                   const std::vector<CollectiveSpan>& collectives);

// Length of the union of half-open intervals [begin, end).
struct TimeInterval {
  double begin = 0;
  double end = 0;
};
double united_length(std::vector<TimeInterval> intervals);

// Bytes that one of `ranks` members sends: simulator/traffic.cpp counts the same.
std::uint64_t all_reduce_bytes(std::uint64_t payload_bytes, int ranks);
std::uint64_t broadcast_bytes(std::uint64_t payload_bytes, int ranks);

}  // namespace bench::training
