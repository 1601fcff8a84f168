#include "simulator/engine.hpp"

#include <algorithm>
#include <cmath>

namespace bench::simulator {
namespace {

class Engine {
 public:
  Engine(const OperationGraph& graph, const ServiceOrder& order, const OperationTimes& times,
         const Topology& topology, HostProfile host, std::int32_t ranks_per_switch)
      : graph_(graph),
        order_(order),
        times_(times),
        topology_(topology),
        ranks_per_switch_(ranks_per_switch),
        thread_free_(graph.host_threads.size(), 0),
        stream_free_(static_cast<std::size_t>(graph.devices * kStreamsPerDevice), 0),
        slowdown_(static_cast<std::size_t>(graph.devices)),
        paths_(static_cast<std::size_t>((graph.devices + 1) * (graph.devices + 1))) {
    const bool locks = host_costs(host).interpreter_lock;
    for (const std::string& thread : graph.host_threads) {
      takes_lock_.push_back(locks && !is_autograd_thread(thread));
    }
  }

  Schedule run() {
    const std::size_t size = graph_.operations.size();
    schedule_.issue_begin_ns.assign(size, 0);
    schedule_.issue_end_ns.assign(size, 0);
    schedule_.begin_ns.assign(size, 0);
    schedule_.end_ns.assign(size, 0);
    for (const ServiceOrder::Event& event : order_.events) {
      if (event.start) {
        execute(event.op);
      } else {
        issue(event.op);
      }
    }
    schedule_.events = order_.events.size();
    schedule_.link_bytes.resize(topology_.links().size());
    schedule_.link_busy_ns.resize(topology_.links().size());
    return std::move(schedule_);
  }

 private:
  // A collective's share of the compute units, to be paid by the next kernel of the device that
  // runs beside it.
  struct Slowdown {
    std::int64_t owed_ns = 0;
    std::int64_t nominal_end_ns = 0;
  };

  void reach(std::int64_t time) { schedule_.step_ns = std::max(schedule_.step_ns, time); }

  void issue(std::uint32_t i) {
    const Operation& op = graph_.operations[i];
    std::int64_t& thread = thread_free_[op.host_thread];
    std::int64_t begin = thread;
    for (const std::uint32_t dep : op.issue_deps) {
      begin = std::max(begin, schedule_.issue_end_ns[dep]);
    }
    const bool locks = takes_lock_[op.host_thread];
    if (locks) begin = std::max(begin, lock_free_);
    const std::int64_t end = begin + times_.issue_ns[i];
    if (locks) lock_free_ = begin + times_.locked_ns[i];
    thread = end;
    schedule_.issue_begin_ns[i] = begin;
    schedule_.issue_end_ns[i] = end;
    reach(end);
  }

  std::int64_t& stream_free(const Operation& op, std::int32_t device) {
    return stream_free_[static_cast<std::size_t>(device * kStreamsPerDevice + op.stream)];
  }

  std::int64_t ready_time(std::uint32_t i) {
    const Operation& op = graph_.operations[i];
    const std::int32_t device = stream_device(op);
    std::int64_t ready = schedule_.issue_end_ns[i];
    if (device != kNone) {
      ready += times_.launch_latency_ns;
      ready = std::max(ready, stream_free(op, device));
    }
    const bool waits = device != kNone || blocks_host(op);
    if (!waits) return ready;
    for (const std::uint32_t dep : op.device_deps) {
      if (order_.unit[dep] == order_.unit[i]) continue;
      ready = std::max(ready, schedule_.end_ns[order_.unit[dep]]);
    }
    return ready;
  }

  void execute(std::uint32_t unit) {
    std::int64_t begin = 0;
    for (std::uint32_t m = unit; m != kNoMember; m = order_.next_member[m]) {
      begin = std::max(begin, ready_time(m));
    }
    const Operation& op = graph_.operations[unit];
    std::int64_t end = begin + times_.device_ns[unit];
    if (op.kind == OpKind::kernel) end += owed_slowdown(unit);
    if (op.kind == OpKind::copy) end = std::max(end, transfer(op, begin) + times_.device_ns[unit]);
    schedule_.begin_ns[unit] = begin;
    schedule_.end_ns[unit] = end;
    for (std::uint32_t m = unit; m != kNoMember; m = order_.next_member[m]) finish(m, end);
    reach(end);
  }

  void finish(std::uint32_t i, std::int64_t end) {
    const Operation& op = graph_.operations[i];
    const std::int32_t device = stream_device(op);
    if (device != kNone) stream_free(op, device) = end;
    if (blocks_host(op)) {
      std::int64_t& thread = thread_free_[op.host_thread];
      thread = std::max(thread, end);
    }
    if (op.kind != OpKind::collective) return;
    Slowdown& slowdown = slowdown_[static_cast<std::size_t>(device)];
    const std::uint32_t unit = order_.unit[i];
    slowdown.owed_ns += times_.slowdown_ns[unit];
    slowdown.nominal_end_ns = std::max(slowdown.nominal_end_ns, order_.end_ns[unit]);
  }

  // Which kernel runs beside a collective follows from the nominal times, as the service order
  // does, and the whole charge falls on one: nothing here depends on simulated times.
  std::int64_t owed_slowdown(std::uint32_t unit) {
    const Operation& op = graph_.operations[unit];
    if (op.stream != 0) return 0;
    Slowdown& slowdown = slowdown_[static_cast<std::size_t>(op.device)];
    const std::int64_t owed =
        order_.begin_ns[unit] < slowdown.nominal_end_ns ? slowdown.owed_ns : 0;
    slowdown.owed_ns = 0;
    return owed;
  }

  const std::vector<std::uint32_t>& path(const Operation& op) {
    const std::int32_t ends = graph_.devices + 1;
    const auto index = static_cast<std::size_t>((op.device + 1) * ends + op.peer + 1);
    std::vector<std::uint32_t>& path = paths_[index];
    if (path.empty()) {
      path = topology_.path(op.device, op.peer);
      link_free_.resize(topology_.links().size(), 0);
      schedule_.link_bytes.resize(topology_.links().size(), 0);
      schedule_.link_busy_ns.resize(topology_.links().size(), 0);
    }
    return path;
  }

  // Cut-through: every link is busy for the bytes at its own speed, and the last byte arrives when
  // the last link has passed it. A fast link shared by slow ones serves them side by side, a slow
  // one is shared in turn; either way no link carries more than its bandwidth.
  std::int64_t transfer(const Operation& op, std::int64_t begin) {
    std::int64_t at = begin;
    std::int64_t end = begin;
    if (op.device == op.peer) return end;
    for (const std::uint32_t index : path(op)) {
      const Link& link = topology_.links()[index];
      const double sharers = link.behind_switch ? ranks_per_switch_ : 1;
      const auto busy = static_cast<std::int64_t>(
          std::ceil(static_cast<double>(op.bytes_moved) * sharers / link.gb_per_s));
      at = std::max(at, link_free_[index]);
      link_free_[index] = at + busy;
      end = std::max(end, at + busy);
      schedule_.link_bytes[index] += op.bytes_moved;
      schedule_.link_busy_ns[index] += busy;
    }
    return end;
  }

  const OperationGraph& graph_;
  const ServiceOrder& order_;
  const OperationTimes& times_;
  const Topology& topology_;
  std::int32_t ranks_per_switch_;
  Schedule schedule_;
  std::vector<std::int64_t> thread_free_;
  std::vector<std::int64_t> stream_free_;
  std::vector<std::int64_t> link_free_;
  std::vector<bool> takes_lock_;
  std::int64_t lock_free_ = 0;
  std::vector<Slowdown> slowdown_;
  std::vector<std::vector<std::uint32_t>> paths_;
};

}  // namespace

Schedule run_engine(const OperationGraph& graph, const ServiceOrder& order,
                    const OperationTimes& times, const Topology& topology, HostProfile host,
                    std::int32_t ranks_per_switch) {
  return Engine(graph, order, times, topology, host, ranks_per_switch).run();
}

}  // namespace bench::simulator
