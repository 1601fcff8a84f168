#include "simulator/operation_graph.hpp"

#include <algorithm>

namespace bench::simulator {
namespace {

constexpr const char* kPhaseNames[] = {"data", "scatter",  "broadcast", "forward",   "gather",
                                       "loss", "backward", "reduce",    "optimizer", "other"};
static_assert(std::size(kPhaseNames) == kPhaseCount);

constexpr const char* kCategoryNames[] = {"parameters",       "gradients",   "optimizer_state",
                                          "buckets",          "activations", "inputs",
                                          "gathered_outputs", "buffers",     "other"};
static_assert(std::size(kCategoryNames) == kMemoryCategoryCount);

constexpr const char* kDTypeNames[] = {"float32", "float64", "float16", "bfloat16", "int64",
                                       "int32",   "uint8",   "bool",    "other",   "tfloat32"};

struct MemoryEvent {
  std::int64_t op;
  bool is_free;  // at the same operation, freed memory is reused before new memory is taken
  std::size_t allocation;
};

}  // namespace

const char* phase_name(Phase phase) { return kPhaseNames[static_cast<int>(phase)]; }
const char* memory_category_name(MemoryCategory category) {
  return kCategoryNames[static_cast<int>(category)];
}
const char* dtype_name(DType dtype) { return kDTypeNames[static_cast<int>(dtype)]; }

OperationGraph::Peak OperationGraph::peak_memory(std::int32_t device) const {
  std::vector<MemoryEvent> events;
  for (std::size_t i = 0; i < allocations.size(); ++i) {
    const Allocation& a = allocations[i];
    if (a.device != device) continue;
    events.push_back({a.alloc_op, false, i});
    if (a.free_op != kNone) events.push_back({a.free_op, true, i});
  }
  std::sort(events.begin(), events.end(), [](const MemoryEvent& a, const MemoryEvent& b) {
    if (a.op != b.op) return a.op < b.op;
    if (a.is_free != b.is_free) return a.is_free;
    return a.allocation < b.allocation;
  });
  Peak peak;
  std::uint64_t current = 0;
  std::uint64_t by_category[kMemoryCategoryCount] = {};
  for (const MemoryEvent& event : events) {
    const Allocation& a = allocations[event.allocation];
    auto& category = by_category[static_cast<int>(a.category)];
    if (event.is_free) {
      current -= a.bytes;
      category -= a.bytes;
      continue;
    }
    current += a.bytes;
    category += a.bytes;
    if (current <= peak.bytes) continue;
    peak.bytes = current;
    peak.at_op = event.op;
    std::copy(std::begin(by_category), std::end(by_category), std::begin(peak.by_category));
  }
  return peak;
}

}  // namespace bench::simulator
