#include "simulator/buffer_edit.hpp"

#include "simulator/allocation_order.hpp"

#include <algorithm>
#include <map>

namespace bench::simulator {
namespace {

bool sends_buffers(const Operation& op) { return op.phase == Phase::broadcast; }

// The number of each operation that stays; of one that goes, that of the next that stays.
std::vector<std::uint32_t> numbers_without(const OperationGraph& graph) {
  std::vector<std::uint32_t> numbers;
  std::uint32_t next = 0;
  for (const Operation& op : graph.operations) {
    numbers.push_back(next);
    if (!sends_buffers(op)) ++next;
  }
  return numbers;
}

class Editor {
 public:
  explicit Editor(const OperationGraph& graph)
      : graph_(graph), numbers_(numbers_without(graph)), edited_(graph) {}

  OperationGraph edit() {
    edited_.operations.clear();
    edited_.allocations.clear();
    for (const Operation& op : graph_.operations) add(op);
    for (const Allocation& allocation : graph_.allocations) add(allocation);
    sort_allocations(edited_.allocations);
    return std::move(edited_);
  }

 private:
  // What waited for a broadcast waits for what that waited for: on the host for what was issued
  // before it, on the device for nothing, since buffers are as the step before left them.
  std::vector<std::uint32_t> issued_after(const std::vector<std::uint32_t>& deps) const {
    std::vector<std::uint32_t> kept;
    for (const std::uint32_t dep : deps) {
      if (!sends_buffers(graph_.operations[dep])) kept.push_back(numbers_[dep]);
    }
    return kept;
  }

  void add(const Operation& op) {
    if (sends_buffers(op)) {
      waiting_.insert(waiting_.end(), op.issue_deps.begin(), op.issue_deps.end());
      return;
    }
    Operation kept = op;
    std::vector<std::uint32_t> issued = op.issue_deps;
    issued.insert(issued.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
    std::sort(issued.begin(), issued.end());
    kept.issue_deps = issued_after(issued);
    kept.device_deps = issued_after(op.device_deps);
    if (kept.group != 0) kept.group = number_of_group(kept.group);
    edited_.operations.push_back(std::move(kept));
  }

  // Collectives are numbered as they appear.
  std::uint32_t number_of_group(std::uint32_t old) {
    const auto next = static_cast<std::uint32_t>(groups_.size() + 1);
    return groups_.try_emplace(old, next).first->second;
  }

  void add(Allocation a) {
    if (a.alloc_op != kNone && sends_buffers(op_at(a.alloc_op))) return;
    a.alloc_op = number_of(a.alloc_op);
    a.free_op = number_of(a.free_op);
    edited_.allocations.push_back(a);
  }
  const Operation& op_at(std::int64_t i) const {
    return graph_.operations[static_cast<std::size_t>(i)];
  }
  std::int64_t number_of(std::int64_t i) const {
    if (i == kNone) return kNone;
    return numbers_[static_cast<std::size_t>(i)];
  }

  const OperationGraph& graph_;
  const std::vector<std::uint32_t> numbers_;
  OperationGraph edited_;
  std::vector<std::uint32_t> waiting_;  // of the broadcasts since the last operation that stays
  std::map<std::uint32_t, std::uint32_t> groups_;
};

}  // namespace

OperationGraph without_buffer_broadcasts(const OperationGraph& graph) {
  return Editor(graph).edit();
}

}  // namespace bench::simulator
