#include "simulator/service_order.hpp"

#include "bench/core/error.hpp"
#include "simulator/host_costs.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

namespace bench::simulator {
namespace {

// The nominal machine. Its figures only decide who is served first where several ask.
constexpr double kFlopsPerNs = 10e3;
constexpr double kMemoryBytesPerNs = 700;
constexpr double kLinkBytesPerNs = 10;
constexpr double kLaunchNs = 2e3;
constexpr double kCollectiveNs = 30e3;
// Bounds every sum of durations: 10^4 years would not fit in 64 bits of nanoseconds.
constexpr double kMaxNs = 1e15;

constexpr std::uint32_t kNoOp = 0xffffffffU;

std::int64_t nominal_ns(const Operation& op) {
  const double bytes = static_cast<double>(op.bytes_read) + static_cast<double>(op.bytes_written);
  const double moved = static_cast<double>(op.bytes_moved);
  double ns = 0;
  switch (op.kind) {
    case OpKind::kernel:
      ns = op.launches * kLaunchNs + std::max(op.flops / kFlopsPerNs, bytes / kMemoryBytesPerNs);
      break;
    case OpKind::copy:
      ns = kLaunchNs + moved / kLinkBytesPerNs;
      break;
    case OpKind::collective:
      ns = kCollectiveNs + moved / kLinkBytesPerNs;
      break;
    case OpKind::host:
    case OpKind::sync:
      return 0;
  }
  // At least 1: events at the same time are told apart by their index alone.
  return std::max<std::int64_t>(1, std::llround(std::min(ns, kMaxNs)));
}

// Propagates nominal times through the constraints "after the issue of" and "after the end of".
// Node i < n is the issue of operation i, node n + u the execution of unit u.
class NominalPass {
 public:
  NominalPass(const OperationGraph& graph, HostProfile host)
      : graph_(graph), costs_(host_costs(host)), size_(graph.operations.size()) {}

  ServiceOrder run() {
    find_units();
    collect_edges();
    propagate();
    collect_events();
    return std::move(order_);
  }

 private:
  struct Edge {
    std::uint32_t from;
    std::uint32_t to;
  };

  const Operation& op(std::size_t i) const { return graph_.operations[i]; }
  std::uint32_t execution(std::uint32_t i) const {
    return static_cast<std::uint32_t>(size_) + order_.unit[i];
  }
  void find_units() {
    order_.unit.resize(size_);
    order_.next_member.assign(size_, kNoMember);
    std::unordered_map<std::uint32_t, std::uint32_t> last_of_group;
    for (std::uint32_t i = 0; i < size_; ++i) {
      order_.unit[i] = i;
      if (op(i).kind == OpKind::collective && op(i).group > 0) last_of_group[op(i).group] = i;
    }
    if (last_of_group.empty()) return;
    for (std::uint32_t i = 0; i < size_; ++i) {
      const bool member = op(i).kind == OpKind::collective && op(i).group > 0;
      if (!member) continue;
      const std::uint32_t last = last_of_group[op(i).group];
      order_.unit[i] = last;
      if (last == i) continue;
      order_.next_member[i] = order_.next_member[last];
      order_.next_member[last] = i;
    }
  }

  void collect_edges() {
    edges_.reserve(size_ * 5);
    std::vector<std::uint32_t> last_of_thread(graph_.host_threads.size(), kNoOp);
    std::vector<std::uint32_t> last_of_stream(
        static_cast<std::size_t>(graph_.devices) * kStreamsPerDevice, kNoOp);
    for (std::uint32_t i = 0; i < size_; ++i) {
      const Operation& current = op(i);
      std::uint32_t& before = last_of_thread[current.host_thread];
      if (before != kNoOp)
        edges_.push_back({blocks_host(op(before)) ? execution(before) : before, i});
      before = i;
      for (const std::uint32_t dep : current.issue_deps) edges_.push_back({dep, i});
      for (const std::uint32_t dep : current.device_deps) {
        if (order_.unit[dep] != order_.unit[i]) edges_.push_back({execution(dep), execution(i)});
      }
      edges_.push_back({i, execution(i)});
      const std::int32_t device = stream_device(current);
      if (device == kNone) continue;
      std::uint32_t& ahead =
          last_of_stream[static_cast<std::size_t>(device * kStreamsPerDevice + current.stream)];
      if (ahead != kNoOp && order_.unit[ahead] != order_.unit[i]) {
        edges_.push_back({execution(ahead), execution(i)});
      }
      ahead = i;
    }
  }

  void sort_edges(std::vector<std::uint32_t>& first, std::vector<std::uint32_t>& targets) const {
    first.assign(2 * size_ + 1, 0);
    for (const Edge& edge : edges_) ++first[edge.from + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    targets.resize(edges_.size());
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    for (const Edge& edge : edges_) targets[next[edge.from]++] = edge.to;
  }

  void propagate() {
    std::vector<std::uint32_t> first;
    std::vector<std::uint32_t> targets;
    sort_edges(first, targets);
    std::vector<std::uint32_t> waiting(2 * size_, 0);
    for (const Edge& edge : edges_) ++waiting[edge.to];
    begin_.assign(2 * size_, 0);
    end_.assign(2 * size_, 0);
    std::vector<std::uint32_t> ready;
    std::size_t nodes = size_;
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (order_.unit[i] == i) ++nodes;
      if (waiting[i] == 0) ready.push_back(i);
    }
    std::size_t done = 0;
    while (!ready.empty()) {
      const std::uint32_t node = ready.back();
      ready.pop_back();
      ++done;
      end_[node] = begin_[node] + duration(node);
      for (std::uint32_t i = first[node]; i < first[node + 1]; ++i) {
        const std::uint32_t to = targets[i];
        begin_[to] = std::max(begin_[to], end_[node]);
        if (--waiting[to] == 0) ready.push_back(to);
      }
    }
    if (done < nodes) report_circle(waiting);
  }

  std::int64_t duration(std::uint32_t node) const {
    if (node >= size_) return nominal_ns(op(node - size_));
    const Operation& current = op(node);
    const std::string& thread = graph_.host_threads[current.host_thread];
    const double ns =
        issue_time(current, graph_.names[current.name], is_autograd_thread(thread), costs_)
            .total_ns();
    return std::llround(std::min(ns, kMaxNs));
  }

  [[noreturn]] void report_circle(const std::vector<std::uint32_t>& waiting) const {
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (waiting[i] == 0 && waiting[execution(i)] == 0) continue;
      throw UsageError("operation graph of " + graph_.model + ": operation " + std::to_string(i) +
                       " (" + graph_.names[op(i).name] +
                       ") waits for itself: members of collectives meet in different orders");
    }
    throw UsageError("operation graph of " + graph_.model + ": operations wait in a circle");
  }

  void collect_events() {
    order_.events.reserve(2 * size_);
    order_.begin_ns.resize(size_);
    order_.end_ns.resize(size_);
    for (std::uint32_t i = 0; i < size_; ++i) {
      order_.events.push_back({begin_[i], i, false});
      if (order_.unit[i] != i) continue;
      order_.begin_ns[i] = begin_[size_ + i];
      order_.end_ns[i] = end_[size_ + i];
      order_.events.push_back({order_.begin_ns[i], i, true});
    }
    std::sort(order_.events.begin(), order_.events.end(),
              [](const ServiceOrder::Event& a, const ServiceOrder::Event& b) {
                if (a.nominal_ns != b.nominal_ns) return a.nominal_ns < b.nominal_ns;
                if (a.op != b.op) return a.op < b.op;
                return a.start < b.start;
              });
  }

  const OperationGraph& graph_;
  HostCosts costs_;
  std::size_t size_;
  ServiceOrder order_;
  std::vector<Edge> edges_;
  std::vector<std::int64_t> begin_;
  std::vector<std::int64_t> end_;
};

}  // namespace

std::int32_t stream_device(const Operation& op) {
  if (op.kind == OpKind::host || op.kind == OpKind::sync) return kNone;
  return op.kind == OpKind::copy && op.device == kNone ? op.peer : op.device;
}

bool blocks_host(const Operation& op) { return op.blocking || op.kind == OpKind::sync; }

ServiceOrder service_order(const OperationGraph& graph, HostProfile host) {
  return NominalPass(graph, host).run();
}

}  // namespace bench::simulator
