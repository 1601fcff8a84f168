// Timeline: the common currency of measured and simulated runs. CUPTI fills it on a real GPU, the
// simulator on a virtual one; analysis, metrics, traces and reports read nothing else.
#pragma once

#include "simulator/operation_graph.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace bench::profiling {

enum class IntervalKind : std::uint8_t { compute, copy, collective, host, wait };
inline constexpr int kIntervalKindCount = 5;
const char* interval_kind_name(IntervalKind kind);

// Times are nanoseconds from the start of the step, signed 64 bit.
struct Interval {
  std::int32_t rank = 0;
  std::int32_t device = 0;  // global device index; -1 = host
  std::int32_t stream = 0;  // or host thread index when device == -1
  IntervalKind kind = IntervalKind::compute;
  simulator::Phase phase = simulator::Phase::other;
  std::uint32_t name = 0;  // index into Timeline::names
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;  // moved (copy, collective) or touched (compute)
  double flops = 0;
};

// Bytes in use on a device from `time_ns` until the next sample of the same device.
struct MemorySample {
  std::int32_t device = 0;
  std::int64_t time_ns = 0;
  std::uint64_t bytes = 0;
  // Of simulated steps: adds up to `bytes`.
  std::array<std::uint64_t, simulator::kMemoryCategoryCount> by_category{};
};

struct PhaseSpan {  // host view of a phase on one rank
  std::int32_t rank = 0;
  simulator::Phase phase = simulator::Phase::other;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

struct Timeline {
  bool simulated = false;
  std::int32_t ranks = 1;
  std::int32_t devices = 1;  // over all ranks
  // Symmetric ranks may be stored once: intervals of rank 0 stand for `ranks` equal ones.
  bool ranks_collapsed = false;
  std::int64_t step_ns = 0;  // duration of the optimizer step
  std::vector<std::string> names{""};
  std::vector<std::string> host_threads;
  std::vector<Interval> intervals;  // sorted by (rank, device, stream, begin)
  std::vector<MemorySample> memory;
  std::vector<PhaseSpan> phases;
};

}  // namespace bench::profiling
