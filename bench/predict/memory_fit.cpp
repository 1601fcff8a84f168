#include "bench/predict/memory_fit.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace bench {
namespace {

constexpr double kBytesPerGib = 1024.0 * 1024 * 1024;

// The category of the allocation that first takes the device beyond `limit`.
std::string first_beyond(const simulator::OperationGraph& graph, int device, std::uint64_t limit) {
  struct Event {
    std::int64_t op;
    bool taken;
    std::size_t allocation;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < graph.allocations.size(); ++i) {
    const auto& allocation = graph.allocations[i];
    if (allocation.device != device) continue;
    events.push_back({allocation.alloc_op, true, i});
    if (allocation.free_op != simulator::kNone) events.push_back({allocation.free_op, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.op, a.taken, a.allocation) < std::tie(b.op, b.taken, b.allocation);
  });
  std::uint64_t bytes = 0;
  for (const Event& event : events) {
    const auto& allocation = graph.allocations[event.allocation];
    if (!event.taken) {
      bytes -= allocation.bytes;
      continue;
    }
    bytes += allocation.bytes;
    if (bytes > limit) return simulator::memory_category_name(allocation.category);
  }
  return "";
}

}  // namespace

MemoryFit memory_fit(const simulator::OperationGraph& graph, int device,
                     const simulator::GpuSpec& gpu) {
  MemoryFit fit;
  fit.gpu = device;
  const auto peak = graph.peak_memory(device);
  fit.peak_bytes = peak.bytes;
  for (int i = 0; i < simulator::kMemoryCategoryCount; ++i) {
    if (peak.by_category[i] == 0) continue;
    const auto category = static_cast<simulator::MemoryCategory>(i);
    fit.by_category[simulator::memory_category_name(category)] = peak.by_category[i];
  }
  fit.context_bytes = static_cast<std::uint64_t>(gpu.context_gib.value * kBytesPerGib);
  fit.capacity_bytes = gpu.memory_bytes();
  fit.fits = fit.total_bytes() <= fit.capacity_bytes;
  if (!fit.fits) {
    const std::uint64_t room =
        fit.capacity_bytes > fit.context_bytes ? fit.capacity_bytes - fit.context_bytes : 0;
    fit.first_failure = first_beyond(graph, device, room);
  }
  return fit;
}

}  // namespace bench
