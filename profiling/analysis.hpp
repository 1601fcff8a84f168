// What a step's Timeline means: how long each device computed, communicated, copied and idled, how
// much communication hid behind compute, and how much data moved. Pure interval-set arithmetic on
// unions, so overlapping intervals on several streams are never counted twice.
//
// Definitions, per device, over the step [0, step_ns):
//   communication           collectives, and copies between devices (DataParallel's scatter,
//                           broadcast, gather and reduce are such copies on many machines)
//   copy                    copies between a device and host memory
//   exposed communication   communication runs and compute does not
//   exposed copy            a host copy runs and neither compute nor communication does
//   idle                    none of the three runs
// so compute + exposed communication + exposed copy + idle = step, always.
#pragma once

#include "profiling/timeline.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench::profiling {

struct DeviceMetrics {
  std::int32_t rank = 0;
  std::int32_t device = 0;            // global device index
  std::int64_t compute_ns = 0;        // union of compute intervals
  std::int64_t communication_ns = 0;  // union of communication intervals
  std::int64_t copy_ns = 0;           // union of host copies
  std::int64_t overlap_ns = 0;        // communication while compute runs
  std::int64_t exposed_communication_ns = 0;
  std::int64_t exposed_copy_ns = 0;
  std::int64_t idle_ns = 0;
  std::int64_t idle_host_ns = 0;         // part of idle in which the rank's host was working
  std::uint64_t bytes_communicated = 0;  // payload of the device's communication
};

struct StepMetrics {
  bool simulated = false;
  std::int64_t step_ns = 0;
  std::vector<DeviceMetrics> devices;    // sorted by device, all ranks (collapsed ones too)
  double compute_busy = 0;               // mean over devices of compute / step
  double comm_exposed = 0;               // mean over devices of exposed communication / step
  double comm_overlap = 1;               // hidden / all communication; 1 where there is none
  std::uint64_t bytes_communicated = 0;  // over all devices
  // Host time by phase on rank 0 (spans of one phase may not overlap; they are united).
  std::array<std::int64_t, simulator::kPhaseCount> phase_host_ns{};
  // Device time by phase: union of the device's intervals of the phase, mean over devices.
  std::array<double, simulator::kPhaseCount> phase_device_ns{};
};

// True for collectives and for copies between devices; see the definitions above.
bool is_communication(const Interval& interval);

StepMetrics analyze(const Timeline& timeline);

// The counters of results.json that follow from a timeline: compute_busy, comm_exposed,
// comm_overlap, idle_gpu<i>. Not bytes_communicated: a timeline knows the payload of a collective,
// not what its algorithm sends.
std::map<std::string, double> timeline_counters(const StepMetrics& metrics);

}  // namespace bench::profiling
