#include "profiling/analysis.hpp"

#include "profiling/interval_set.hpp"

#include <algorithm>
#include <utility>

namespace bench::profiling {
namespace {

// Streams of the recorded graph that hold copies to and from host memory (operation_graph.hpp).
constexpr std::int32_t kHostToDeviceStream = 2;
constexpr std::int32_t kDeviceToHostStream = 3;

using PhaseSpans = std::array<std::vector<Span>, simulator::kPhaseCount>;

// The raw spans of one device, sorted into what the metrics distinguish.
struct DeviceSpans {
  std::int32_t rank = 0;
  std::vector<Span> compute, communication, copy;
  PhaseSpans phases;
  std::uint64_t bytes_communicated = 0;
};

struct Sorted {
  std::map<std::int32_t, DeviceSpans> devices;
  std::map<std::int32_t, std::vector<Span>> host_of_rank;
};

void add_device_interval(const Interval& interval, DeviceSpans& into) {
  const Span span{interval.begin_ns, interval.end_ns};
  into.rank = interval.rank;
  if (interval.kind == IntervalKind::wait) return;
  into.phases[static_cast<std::size_t>(interval.phase)].push_back(span);
  if (is_communication(interval)) {
    into.communication.push_back(span);
    into.bytes_communicated += interval.bytes;
  } else if (interval.kind == IntervalKind::copy) {
    into.copy.push_back(span);
  } else if (interval.kind == IntervalKind::compute) {
    into.compute.push_back(span);
  }
}

std::int32_t devices_per_rank(const Timeline& timeline) {
  return std::max(1, timeline.devices / std::max(1, timeline.ranks));
}

Sorted sort_intervals(const Timeline& timeline) {
  Sorted sorted;
  // Devices that never ran anything still appear: they idled for the whole step.
  const std::int32_t stored =
      timeline.ranks_collapsed ? devices_per_rank(timeline) : timeline.devices;
  for (std::int32_t device = 0; device < stored; ++device) {
    sorted.devices[device].rank = device / devices_per_rank(timeline);
  }
  for (const Interval& interval : timeline.intervals) {
    if (interval.device >= 0) {
      add_device_interval(interval, sorted.devices[interval.device]);
    } else if (interval.kind == IntervalKind::host) {
      sorted.host_of_rank[interval.rank].push_back({interval.begin_ns, interval.end_ns});
    }
  }
  return sorted;
}

DeviceMetrics device_metrics(std::int32_t device, const DeviceSpans& spans, const IntervalSet& host,
                             std::int64_t step_ns) {
  const Span step{0, step_ns};
  const IntervalSet compute = IntervalSet(spans.compute).clipped(step);
  const IntervalSet communication = IntervalSet(spans.communication).clipped(step);
  const IntervalSet copy = IntervalSet(spans.copy).clipped(step);
  const IntervalSet working = compute.united(communication);
  const IntervalSet idle = IntervalSet({step}).without(working.united(copy));

  DeviceMetrics metrics;
  metrics.rank = spans.rank;
  metrics.device = device;
  metrics.compute_ns = compute.length_ns();
  metrics.communication_ns = communication.length_ns();
  metrics.copy_ns = copy.length_ns();
  metrics.overlap_ns = communication.intersected(compute).length_ns();
  metrics.exposed_communication_ns = communication.without(compute).length_ns();
  metrics.exposed_copy_ns = copy.without(working).length_ns();
  metrics.idle_ns = idle.length_ns();
  metrics.idle_host_ns = idle.intersected(host).length_ns();
  metrics.bytes_communicated = spans.bytes_communicated;
  return metrics;
}

// One stored rank stands for `ranks` equal ones: repeat its devices under their global indices.
void expand_collapsed_ranks(const Timeline& timeline, std::vector<DeviceMetrics>& devices) {
  const std::vector<DeviceMetrics> first = devices;
  for (std::int32_t rank = 1; rank < timeline.ranks; ++rank) {
    for (DeviceMetrics metrics : first) {
      metrics.rank = rank;
      metrics.device += rank * devices_per_rank(timeline);
      devices.push_back(metrics);
    }
  }
}

void summarize_devices(StepMetrics& metrics) {
  if (metrics.devices.empty() || metrics.step_ns <= 0) return;
  std::int64_t compute = 0, exposed = 0, hidden = 0, communication = 0;
  for (const DeviceMetrics& device : metrics.devices) {
    compute += device.compute_ns;
    exposed += device.exposed_communication_ns;
    hidden += device.overlap_ns;
    communication += device.communication_ns;
    metrics.bytes_communicated += device.bytes_communicated;
  }
  const double device_time =
      static_cast<double>(metrics.step_ns) * static_cast<double>(metrics.devices.size());
  metrics.compute_busy = static_cast<double>(compute) / device_time;
  metrics.comm_exposed = static_cast<double>(exposed) / device_time;
  if (communication > 0) {
    metrics.comm_overlap = static_cast<double>(hidden) / static_cast<double>(communication);
  }
}

void summarize_phases(const Timeline& timeline, const Sorted& sorted, StepMetrics& metrics) {
  const Span step{0, timeline.step_ns};
  PhaseSpans host;
  for (const PhaseSpan& span : timeline.phases) {
    if (span.rank == 0) {
      host[static_cast<std::size_t>(span.phase)].push_back({span.begin_ns, span.end_ns});
    }
  }
  for (std::size_t phase = 0; phase < host.size(); ++phase) {
    metrics.phase_host_ns[phase] = IntervalSet(host[phase]).clipped(step).length_ns();
    std::int64_t total = 0;
    for (const auto& [device, spans] : sorted.devices) {
      total += IntervalSet(spans.phases[phase]).clipped(step).length_ns();
    }
    if (!sorted.devices.empty()) {
      metrics.phase_device_ns[phase] =
          static_cast<double>(total) / static_cast<double>(sorted.devices.size());
    }
  }
}

}  // namespace

bool is_communication(const Interval& interval) {
  if (interval.device < 0) return false;
  if (interval.kind == IntervalKind::collective) return true;
  return interval.kind == IntervalKind::copy && interval.stream != kHostToDeviceStream &&
         interval.stream != kDeviceToHostStream;
}

StepMetrics analyze(const Timeline& timeline) {
  const Sorted sorted = sort_intervals(timeline);
  StepMetrics metrics;
  metrics.simulated = timeline.simulated;
  metrics.step_ns = timeline.step_ns;
  for (const auto& [device, spans] : sorted.devices) {
    const auto host = sorted.host_of_rank.find(spans.rank);
    const IntervalSet host_set =
        host == sorted.host_of_rank.end() ? IntervalSet() : IntervalSet(host->second);
    metrics.devices.push_back(device_metrics(device, spans, host_set, timeline.step_ns));
  }
  if (timeline.ranks_collapsed) expand_collapsed_ranks(timeline, metrics.devices);
  summarize_devices(metrics);
  summarize_phases(timeline, sorted, metrics);
  return metrics;
}

std::map<std::string, double> timeline_counters(const StepMetrics& metrics) {
  std::map<std::string, double> counters{
      {"compute_busy", metrics.compute_busy},
      {"comm_exposed", metrics.comm_exposed},
      {"comm_overlap", metrics.comm_overlap},
  };
  if (metrics.step_ns <= 0) return counters;
  for (const DeviceMetrics& device : metrics.devices) {
    counters["idle_gpu" + std::to_string(device.device)] =
        static_cast<double>(device.idle_ns) / static_cast<double>(metrics.step_ns);
  }
  return counters;
}

}  // namespace bench::profiling
