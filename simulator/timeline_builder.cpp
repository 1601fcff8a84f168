#include "simulator/timeline_builder.hpp"

#include <algorithm>
#include <tuple>

namespace bench::simulator {
namespace {

using profiling::Interval;
using profiling::IntervalKind;
using profiling::MemorySample;
using profiling::PhaseSpan;
using profiling::Timeline;

constexpr std::int32_t kHostDevice = -1;
constexpr std::int32_t kCommunicationStream = 1;

class Builder {
 public:
  Builder(const OperationGraph& graph, const ServiceOrder& order, const Schedule& schedule,
          Timeline& timeline)
      : graph_(graph), order_(order), schedule_(schedule), timeline_(timeline) {}

  void add_intervals() {
    timeline_.intervals.reserve(graph_.operations.size() * 2);
    for (std::uint32_t i = 0; i < graph_.operations.size(); ++i) {
      add_host_intervals(i);
      add_device_interval(i);
    }
    std::stable_sort(timeline_.intervals.begin(), timeline_.intervals.end(),
                     [](const Interval& a, const Interval& b) {
                       return std::tie(a.rank, a.device, a.stream, a.begin_ns) <
                              std::tie(b.rank, b.device, b.stream, b.begin_ns);
                     });
  }

  void add_memory() {
    for (std::int32_t device = 0; device < graph_.devices; ++device) add_memory_of(device);
  }

  // Phases follow one another as the host issues them; a phase lasts until the next one begins.
  void add_phases() {
    std::vector<std::uint32_t> by_time(graph_.operations.size());
    for (std::uint32_t i = 0; i < by_time.size(); ++i) by_time[i] = i;
    std::stable_sort(by_time.begin(), by_time.end(), [&](std::uint32_t a, std::uint32_t b) {
      return schedule_.issue_begin_ns[a] < schedule_.issue_begin_ns[b];
    });
    for (const std::uint32_t i : by_time) {
      const Phase phase = graph_.operations[i].phase;
      std::vector<PhaseSpan>& phases = timeline_.phases;
      const std::int64_t begin = schedule_.issue_begin_ns[i];
      if (phases.empty() || phases.back().phase != phase) {
        if (!phases.empty()) phases.back().end_ns = begin;
        phases.push_back({0, phase, begin, begin});
      }
      phases.back().end_ns = std::max(phases.back().end_ns, host_end(i));
    }
    for (std::size_t i = 1; i < timeline_.phases.size(); ++i) {
      PhaseSpan& before = timeline_.phases[i - 1];
      before.end_ns = timeline_.phases[i].begin_ns;
    }
  }

 private:
  std::int64_t end_of(std::uint32_t i) const { return schedule_.end_ns[order_.unit[i]]; }

  std::int64_t host_end(std::uint32_t i) const {
    const std::int64_t issued = schedule_.issue_end_ns[i];
    return blocks_host(graph_.operations[i]) ? std::max(issued, end_of(i)) : issued;
  }

  void add_host_intervals(std::uint32_t i) {
    const Operation& op = graph_.operations[i];
    Interval interval;
    interval.device = kHostDevice;
    interval.stream = static_cast<std::int32_t>(op.host_thread);
    interval.phase = op.phase;
    interval.name = op.name;
    interval.kind = IntervalKind::host;
    interval.begin_ns = schedule_.issue_begin_ns[i];
    interval.end_ns = schedule_.issue_end_ns[i];
    if (interval.end_ns > interval.begin_ns) timeline_.intervals.push_back(interval);
    if (host_end(i) <= interval.end_ns) return;
    interval.kind = IntervalKind::wait;
    interval.begin_ns = interval.end_ns;
    interval.end_ns = host_end(i);
    timeline_.intervals.push_back(interval);
  }

  void add_device_interval(std::uint32_t i) {
    const Operation& op = graph_.operations[i];
    const std::int32_t device = stream_device(op);
    if (device == kNone) return;
    Interval interval;
    interval.device = device;
    interval.stream = op.stream;
    interval.phase = op.phase;
    interval.name = op.name;
    interval.begin_ns = schedule_.begin_ns[order_.unit[i]];
    interval.end_ns = end_of(i);
    interval.flops = op.flops;
    interval.bytes = op.kind == OpKind::kernel ? op.bytes_read + op.bytes_written : op.bytes_moved;
    const bool moves = op.kind == OpKind::copy && op.device != op.peer;
    interval.kind = op.kind == OpKind::collective ? IntervalKind::collective
                    : moves                       ? IntervalKind::copy
                                                  : IntervalKind::compute;
    if (interval.end_ns <= interval.begin_ns) return;
    timeline_.intervals.push_back(interval);
    if (!moves || op.device == kNone || op.peer == kNone) return;
    // The receiving GPU communicates as well; its bytes are counted at the sender.
    interval.device = op.peer;
    interval.stream = kCommunicationStream;
    interval.bytes = 0;
    timeline_.intervals.push_back(interval);
  }

  struct Change {
    std::int64_t time_ns;
    std::int64_t op;
    std::int64_t bytes;  // negative: freed
    MemoryCategory category;
  };

  void add_memory_of(std::int32_t device) {
    std::vector<Change> changes;
    for (const Allocation& a : graph_.allocations) {
      if (a.device != device) continue;
      const auto bytes = static_cast<std::int64_t>(a.bytes);
      changes.push_back({issue_time(a.alloc_op), a.alloc_op, bytes, a.category});
      if (a.free_op != kNone)
        changes.push_back({issue_time(a.free_op), a.free_op, -bytes, a.category});
    }
    // At one operation, memory that it frees is reused before new memory is taken.
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return std::tuple(a.time_ns, a.op, a.bytes > 0) < std::tuple(b.time_ns, b.op, b.bytes > 0);
    });
    MemorySample in_use;
    in_use.device = device;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      // Unsigned numbers wrap round: what is taken off was added before.
      in_use.bytes += static_cast<std::uint64_t>(changes[i].bytes);
      in_use.by_category[static_cast<std::size_t>(changes[i].category)] +=
          static_cast<std::uint64_t>(changes[i].bytes);
      in_use.time_ns = changes[i].time_ns;
      const bool last = i + 1 == changes.size() || changes[i + 1].time_ns != changes[i].time_ns ||
                        changes[i + 1].bytes < 0;
      const bool turns = last || (changes[i].bytes > 0) != (changes[i + 1].bytes > 0);
      if (turns) timeline_.memory.push_back(in_use);
    }
  }

  std::int64_t issue_time(std::int64_t op) const {
    return op < 0 ? 0 : schedule_.issue_begin_ns[static_cast<std::size_t>(op)];
  }

  const OperationGraph& graph_;
  const ServiceOrder& order_;
  const Schedule& schedule_;
  Timeline& timeline_;
};

}  // namespace

Timeline build_timeline(const OperationGraph& graph, const ServiceOrder& order,
                        const Schedule& schedule, std::int32_t ranks, bool keep_intervals) {
  Timeline timeline;
  timeline.simulated = true;
  timeline.ranks = ranks;
  timeline.devices = ranks * graph.devices;
  timeline.ranks_collapsed = ranks > 1;
  timeline.step_ns = schedule.step_ns;
  timeline.names = graph.names;
  timeline.host_threads = graph.host_threads;
  if (!keep_intervals) return timeline;
  Builder builder(graph, order, schedule, timeline);
  builder.add_intervals();
  builder.add_memory();
  builder.add_phases();
  return timeline;
}

}  // namespace bench::simulator
