// Whether a step fits into a GPU's memory, and if not, what was asked for when it ran out. On top
// of the bytes in use come what PyTorch's caching allocator holds back and the CUDA context with
// the libraries' workspaces.
#pragma once

#include "simulator/mixed_job.hpp"
#include "simulator/operation_graph.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace bench {

struct MemoryFit {
  int gpu = 0;
  std::string node;  // title, where the machine has nodes of several kinds
  // In use by tensors and cuBLAS's workspaces, as torch.cuda.max_memory_allocated.
  std::uint64_t peak_bytes = 0;
  std::uint64_t reserved_bytes = 0;  // as torch.cuda.max_memory_reserved: the cache is in it
  std::uint64_t context_bytes = 0;   // the CUDA context, outside the allocator
  std::uint64_t nccl_bytes = 0;      // NCCL's buffers, outside as well
  std::uint64_t capacity_bytes = 0;
  std::map<std::string, std::uint64_t> by_category;  // at the peak
  bool fits = true;
  std::string first_failure;  // category of the first allocation that does not fit

  std::uint64_t cached_bytes() const { return reserved_bytes - peak_bytes; }
  std::uint64_t total_bytes() const { return reserved_bytes + context_bytes + nccl_bytes; }
};

// `part` is the job of the device, on nodes of its kind.
MemoryFit memory_fit(const simulator::OperationGraph& graph, int device,
                     const simulator::JobPart& part);

}  // namespace bench
