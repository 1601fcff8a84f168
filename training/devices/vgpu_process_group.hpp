// A c10d process group for virtual GPUs.
//
// gloo: one process per rank; collectives run over ProcessGroupGloo on the same host memory.
// symmetric: one process stands for rank 0 of N equal ranks (shape execution): collectives complete
// at once, and small real tensors get the value N symmetric ranks would give.
// Either way every collective is recorded with its bytes (operation_graph.hpp, across_ranks).
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace bench::training {

enum class VgpuTransport { gloo, symmetric };

struct VgpuGroupOptions {
  VgpuTransport transport = VgpuTransport::gloo;
  std::chrono::milliseconds timeout{std::chrono::minutes(5)};
  std::string interface = "lo";  // network interface that Gloo binds
};

// `store` may be null for the symmetric transport. The group serves vgpu and CPU tensors.
c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int world_size,
    const VgpuGroupOptions& options = {});

// Payload bytes of all collectives this process has issued through such groups.
std::uint64_t bytes_communicated();

// Called with every collective as it is issued, before it can wait for a peer; from any thread.
struct CollectiveCall {
  const char* name;  // "all_reduce", "broadcast", "all_gather", "reduce", "barrier"
  std::uint64_t payload_bytes;
};
using CollectiveObserver = std::function<void(const CollectiveCall&)>;
void observe_collectives(CollectiveObserver observer);  // empty: nobody

}  // namespace bench::training
