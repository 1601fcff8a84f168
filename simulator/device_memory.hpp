// The memory of one device over a step: the recorded allocations through the caching allocator,
// twice, because the second step meets what the first left cached.
#pragma once

#include "simulator/operation_graph.hpp"

#include <cstdint>
#include <limits>
#include <optional>

namespace bench::simulator {

struct DeviceMemory {
  std::uint64_t reserved_bytes = 0;   // most that the allocator held
  std::uint64_t workspace_bytes = 0;  // of cuBLAS, a part of what is allocated
  // The category of the first allocation that was refused; nullopt: everything fits.
  std::optional<MemoryCategory> refused;
};

// `compute_capability` decides how large cuBLAS's workspaces are; `capacity` is what the device has
// left for the allocator.
DeviceMemory device_memory(const OperationGraph& graph, std::int32_t device,
                           double compute_capability,
                           std::uint64_t capacity = std::numeric_limits<std::uint64_t>::max() / 2);

// Workspaces that PyTorch keeps for cuBLAS, one for each host thread that multiplies matrices on
// the device: the forward pass's and the backward pass's.
std::uint64_t cublas_workspace_bytes(const OperationGraph& graph, std::int32_t device,
                                     double compute_capability);

}  // namespace bench::simulator
