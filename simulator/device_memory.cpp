#include "simulator/device_memory.hpp"

#include "simulator/caching_heap.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

namespace bench::simulator {
namespace {

// PyTorch's defaults of CUBLAS_WORKSPACE_CONFIG, :4096:2:16:8 and on Hopper :4096:8, in KiB
// (aten/src/ATen/cuda/CublasHandlePool.cpp).
constexpr std::uint64_t kWorkspace = (4096 * 2 + 16 * 8) * 1024ULL;
constexpr std::uint64_t kHopperWorkspace = 4096 * 8 * 1024ULL;
constexpr double kHopper = 9.0;

bool multiplies_matrices(std::string_view name) {
  constexpr std::array kNames{"addmm", "::mm", "bmm", "matmul", "linear"};
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

class Replay {
 public:
  Replay(const OperationGraph& graph, std::int32_t device, std::uint64_t capacity)
      : graph_(graph), heap_(capacity), blocks_(graph.allocations.size()) {
    for (std::size_t i = 0; i < graph.allocations.size(); ++i) {
      const Allocation& a = graph.allocations[i];
      if (a.device != device) continue;
      if (a.alloc_op == kNone) {
        initial_.push_back(i);
      } else {
        events_.push_back({a.alloc_op, false, i});
      }
      if (a.free_op != kNone) events_.push_back({a.free_op, true, i});
    }
    // At one operation, freed memory is reused before new memory is taken.
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      if (a.op != b.op) return a.op < b.op;
      if (a.is_free != b.is_free) return a.is_free;
      return a.allocation < b.allocation;
    });
  }

  CachingHeap& heap() { return heap_; }

  // Both return false when something was refused.
  bool take_initial() {
    return std::all_of(initial_.begin(), initial_.end(), [&](std::size_t i) { return take(i); });
  }

  bool step() {
    for (const Event& event : events_) {
      if (event.is_free) {
        give_back(event.allocation);
      } else if (!take(event.allocation)) {
        return false;
      }
    }
    return true;
  }

  // What the step left behind becomes what the next one begins with.
  void turn_over() {
    for (const Event& event : events_) {
      if (!event.is_free && graph_.allocations[event.allocation].free_op == kNone) {
        give_back(event.allocation);
      }
    }
  }

  MemoryCategory refused() const { return refused_; }

 private:
  struct Event {
    std::int64_t op;
    bool is_free;
    std::size_t allocation;
  };

  bool take(std::size_t i) {
    if (blocks_[i]) return true;  // still held from the step before
    blocks_[i] = heap_.take(graph_.allocations[i].bytes);
    if (!blocks_[i]) refused_ = graph_.allocations[i].category;
    return blocks_[i].has_value();
  }

  void give_back(std::size_t i) {
    if (blocks_[i]) heap_.give_back(*blocks_[i]);
    blocks_[i].reset();
  }

  const OperationGraph& graph_;
  CachingHeap heap_;
  std::vector<std::optional<CachingHeap::Block>> blocks_;
  std::vector<std::size_t> initial_;
  std::vector<Event> events_;
  MemoryCategory refused_ = MemoryCategory::other;
};

}  // namespace

std::uint64_t cublas_workspace_bytes(const OperationGraph& graph, std::int32_t device,
                                     double compute_capability) {
  std::set<std::uint32_t> threads;
  for (const Operation& op : graph.operations) {
    const bool counts = op.kind == OpKind::kernel && op.device == device &&
                        multiplies_matrices(graph.names[op.name]);
    if (counts) threads.insert(op.host_thread);
  }
  return threads.size() * (compute_capability >= kHopper ? kHopperWorkspace : kWorkspace);
}

DeviceMemory device_memory(const OperationGraph& graph, std::int32_t device,
                           double compute_capability, std::uint64_t capacity) {
  Replay replay(graph, device, capacity);
  DeviceMemory memory;
  memory.workspace_bytes = cublas_workspace_bytes(graph, device, compute_capability);
  const bool workspace =
      memory.workspace_bytes == 0 || replay.heap().take(memory.workspace_bytes).has_value();
  bool fits = workspace && replay.take_initial() && replay.step();
  if (fits) {
    replay.turn_over();
    fits = replay.take_initial() && replay.step();
  }
  memory.reserved_bytes = replay.heap().peak_reserved();
  if (!fits) memory.refused = workspace ? replay.refused() : MemoryCategory::other;
  return memory;
}

}  // namespace bench::simulator
