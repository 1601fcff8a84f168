#include "bench/predict/memory_fit.hpp"

#include "simulator/device_memory.hpp"

#include <algorithm>

namespace bench {
namespace {

constexpr double kBytesPerGib = 1024.0 * 1024 * 1024;

// libtorch's own data_parallel copies and adds without NCCL.
std::uint64_t nccl_bytes(const simulator::OperationGraph& graph,
                         const simulator::NcclTopology& job) {
  const bool uses_nccl = graph.strategy == "distributed" || graph.strategy == "data_parallel";
  if (!uses_nccl || job.ranks < 2) return 0;
  return static_cast<std::uint64_t>(simulator::nccl_buffer_bytes(job));
}

void list_categories(const simulator::OperationGraph::Peak& peak, MemoryFit& fit) {
  for (int i = 0; i < simulator::kMemoryCategoryCount; ++i) {
    if (peak.by_category[i] == 0) continue;
    const auto category = static_cast<simulator::MemoryCategory>(i);
    fit.by_category[simulator::memory_category_name(category)] = peak.by_category[i];
  }
}

}  // namespace

MemoryFit memory_fit(const simulator::OperationGraph& graph, int device,
                     const simulator::JobPart& part) {
  const simulator::GpuSpec& gpu = part.machine->gpu;
  MemoryFit fit;
  fit.gpu = device;
  fit.context_bytes = static_cast<std::uint64_t>(gpu.context_gib.value * kBytesPerGib);
  fit.nccl_bytes = nccl_bytes(graph, part.job);
  fit.capacity_bytes = gpu.memory_bytes();
  const std::uint64_t outside = fit.context_bytes + fit.nccl_bytes;
  const std::uint64_t room = fit.capacity_bytes > outside ? fit.capacity_bytes - outside : 0;
  const auto peak = graph.peak_memory(device);
  list_categories(peak, fit);
  const auto limited = simulator::device_memory(graph, device, gpu.compute_capability, room);
  fit.fits = !limited.refused.has_value();
  if (!fit.fits) fit.first_failure = simulator::memory_category_name(*limited.refused);
  // Where it does not fit, what it would take.
  fit.reserved_bytes =
      fit.fits ? limited.reserved_bytes
               : simulator::device_memory(graph, device, gpu.compute_capability).reserved_bytes;
  if (limited.workspace_bytes > 0) fit.by_category["cuBLAS workspaces"] = limited.workspace_bytes;
  fit.peak_bytes = peak.bytes + limited.workspace_bytes;
  fit.reserved_bytes = std::max(fit.reserved_bytes, fit.peak_bytes);
  return fit;
}

}  // namespace bench
