// Whether a step fits into a GPU's memory, and if not, what was asked for when it ran out. On top
// of the bytes in use come what PyTorch's caching allocator holds back and the CUDA context with
// the libraries' workspaces.
#pragma once

#include "simulator/machine.hpp"
#include "simulator/operation_graph.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace bench {

struct MemoryFit {
  int gpu = 0;
  std::uint64_t peak_bytes = 0;     // in use by tensors, as torch.cuda.max_memory_allocated
  std::uint64_t context_bytes = 0;  // outside the allocator
  std::uint64_t capacity_bytes = 0;
  std::map<std::string, std::uint64_t> by_category;  // at the peak
  bool fits = true;
  std::string first_failure;  // category of the first allocation that does not fit

  std::uint64_t total_bytes() const { return peak_bytes + context_bytes; }
};

MemoryFit memory_fit(const simulator::OperationGraph& graph, int device,
                     const simulator::GpuSpec& gpu);

}  // namespace bench
