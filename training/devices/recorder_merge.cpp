// Merges the logs of host threads into one graph whose order does not depend on scheduling.
#include "simulator/allocation_order.hpp"

#include "training/devices/recorder_backward.hpp"
#include "training/devices/recorder_log.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace bench::training {
namespace {

using simulator::kNone;
using simulator::OperationGraph;

// "main" first, then by name with numbers as numbers: "backward:2" before "backward:10".
bool thread_order(const HostLog* a, const HostLog* b) {
  const auto key = [](const HostLog* log) {
    const auto colon = log->name.find_last_of(':');
    const bool numbered = colon != std::string::npos && colon + 1 < log->name.size() &&
                          std::all_of(log->name.begin() + colon + 1, log->name.end(),
                                      [](char c) { return c >= '0' && c <= '9'; });
    return std::tuple(log->name != "main", numbered ? log->name.substr(0, colon) : log->name,
                      numbered ? std::stol(log->name.substr(colon + 1)) : -1L);
  };
  return key(a) < key(b);
}

class Merge {
 public:
  explicit Merge(const std::deque<std::unique_ptr<HostLog>>& logs) : orders_(order_backward(logs)) {
    for (const auto& log : logs) {
      position_.emplace_back(log->operations.size(), kNone);
      if (!log->operations.empty() || log->name == "main") order_.push_back(log.get());
    }
    std::sort(order_.begin(), order_.end(), thread_order);
    next_.resize(order_.size());
  }

  OperationGraph run() {
    for (const HostLog* log : order_) graph_.host_threads.push_back(log->name);
    while (emit_next()) {
    }
    return std::move(graph_);
  }

  std::int64_t position(const OpRef& ref) const {
    return ref.valid() ? position_[ref.thread][ref.index] : kNone;
  }

  // Memory is given back when its thread issues the next operation. Which of autograd's threads
  // drops the last reference, and after which node, depends on timing: there it is the operation
  // after the last that used the memory, in the order that stands now.
  std::int64_t free_position(const AllocationRecord& record) const {
    if (record.freed_on == kNone || orders_[record.freed_on].empty()) {
      return position(record.freed_by);
    }
    std::int64_t last = kNone;
    for (const OpRef& use : record.uses) last = std::max(last, position(use));
    const auto next = followers_.find(last);
    const auto begin = begins_.find(record.freed_in);
    if (next == followers_.end() || begin == begins_.end()) return position(record.freed_by);
    return std::max(next->second, begin->second);
  }

 private:
  // Emits the first thread's next operation whose dependencies have been emitted.
  bool emit_next() {
    for (std::size_t thread = 0; thread < order_.size(); ++thread) {
      const HostLog& log = *order_[thread];
      if (next_[thread] == log.operations.size()) continue;
      const std::int32_t index = operation_at(log, next_[thread]);
      const LoggedOperation& logged = log.operations[index];
      if (!ready(logged.device_deps) || !ready(logged.issue_deps)) continue;
      emit(log, index, static_cast<std::uint32_t>(thread));
      ++next_[thread];
      return true;
    }
    return false;
  }

  bool ready(const std::vector<OpRef>& deps) const {
    return std::all_of(deps.begin(), deps.end(),
                       [&](const OpRef& dep) { return position(dep) != kNone; });
  }

  std::int32_t operation_at(const HostLog& log, std::size_t place) const {
    const std::vector<std::int32_t>& order = orders_[log.index];
    return order.empty() ? static_cast<std::int32_t>(place) : order[place];
  }

  void emit(const HostLog& log, std::int32_t index, std::uint32_t thread) {
    const LoggedOperation& logged = log.operations[index];
    const auto here = static_cast<std::int64_t>(graph_.operations.size());
    simulator::Operation op = logged.op;
    op.host_thread = thread;
    op.name = intern(logged.name);
    op.shape = intern(logged.shape);
    op.device_deps = positions(logged.device_deps);
    op.issue_deps = positions(logged.issue_deps);
    wait_for_destination(op, thread);
    note_followers(log, logged, op, here);
    if (op.group != 0) op.group = groups_.try_emplace(op.group, groups_.size() + 1).first->second;
    position_[log.index][index] = static_cast<std::int32_t>(here);
    last_of_log_[log.index] = here;
    begins_.try_emplace(logged.backward_id, here);
    last_backward_[log.index] = logged.backward_id;
    if (op.kind != simulator::OpKind::host && op.kind != simulator::OpKind::sync) {
      last_on_stream_[{thread, op.device, op.stream}] = static_cast<std::uint32_t>(here);
    }
    graph_.operations.push_back(std::move(op));
  }

  // A copy between devices starts when the destination's compute stream has caught up with what
  // this thread gave it (as copy_kernel_cuda does).
  void wait_for_destination(simulator::Operation& op, std::uint32_t thread) const {
    if (op.kind != simulator::OpKind::copy || op.device == kNone || op.peer == kNone ||
        op.device == op.peer) {
      return;
    }
    const auto found = last_on_stream_.find({thread, op.peer, kComputeStream});
    if (found == last_on_stream_.end()) return;
    op.device_deps.push_back(found->second);
    std::sort(op.device_deps.begin(), op.device_deps.end());
    op.device_deps.erase(std::unique(op.device_deps.begin(), op.device_deps.end()),
                         op.device_deps.end());
  }

  // What comes after an operation: the next one of its thread in the same call into the engine, or
  // the one that joins the thread.
  void note_followers(const HostLog& log, const LoggedOperation& logged,
                      const simulator::Operation& op, std::int64_t here) {
    const auto before = last_of_log_.find(log.index);
    if (before != last_of_log_.end() && last_backward_[log.index] == logged.backward_id) {
      followers_.try_emplace(before->second, here);
    }
    for (const std::uint32_t dep : op.issue_deps) followers_.try_emplace(dep, here);
  }

  std::vector<std::uint32_t> positions(const std::vector<OpRef>& deps) const {
    std::vector<std::uint32_t> result;
    for (const OpRef& dep : deps) result.push_back(static_cast<std::uint32_t>(position(dep)));
    std::sort(result.begin(), result.end());
    return result;
  }

  std::uint32_t intern(const std::string& name) {
    if (name.empty()) return 0;
    const auto [found, fresh] = names_.try_emplace(name, graph_.names.size());
    if (fresh) graph_.names.push_back(name);
    return found->second;
  }

  std::vector<const HostLog*> order_;
  std::vector<std::size_t> next_;                    // by canonical thread
  std::vector<std::vector<std::int32_t>> position_;  // [log index][operation] -> index in the graph
  std::unordered_map<std::string, std::uint32_t> names_;
  std::unordered_map<std::uint32_t, std::uint32_t> groups_;  // in order of first appearance
  LogOrders orders_;
  std::map<std::int32_t, std::int64_t> last_of_log_;     // by log: what it emitted last
  std::map<std::int32_t, std::uint64_t> last_backward_;  // and in which call into the engine
  std::map<std::tuple<std::uint32_t, std::int32_t, std::int32_t>, std::uint32_t> last_on_stream_;
  std::unordered_map<std::uint64_t, std::int64_t> begins_;  // of calls into the engine
  std::unordered_map<std::int64_t, std::int64_t> followers_;
  OperationGraph graph_;
};

}  // namespace

OperationGraph merge_logs(const std::deque<std::unique_ptr<HostLog>>& logs,
                          const std::deque<AllocationRecord>& allocations) {
  Merge merge(logs);
  OperationGraph graph = merge.run();
  for (const AllocationRecord& record : allocations) {
    if (record.bytes == 0) continue;
    graph.allocations.push_back({record.device, record.category, record.bytes,
                                 merge.position(record.allocated_by), merge.free_position(record)});
  }
  simulator::sort_allocations(graph.allocations);
  return graph;
}

}  // namespace bench::training
