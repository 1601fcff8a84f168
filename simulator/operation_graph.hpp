// The record of one training step: every operation a virtual GPU executed, with what it costs and
// what it waits for. LibTorch-free; training/devices fills it, simulator/ gives it times.
//
// The record is independent of how the host scheduled its threads: operations are kept per host
// thread in issue order, and everything that crosses threads, streams or devices is an explicit
// dependency. Two runs of the same program give the same graph, byte for byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench::simulator {

inline constexpr std::int32_t kNone = -1;

enum class OpKind : std::uint8_t {
  kernel,      // runs on `device`/`stream`
  copy,        // bytes move from `device` to `peer` (-1 = host memory on either side)
  collective,  // member of `group`: all members start when the last is ready and end together
  host,        // host-only work (module replication, graph walk); occupies the host thread
  sync,        // the host thread blocks until the dependencies have finished on their devices
};

enum class CollectiveKind : std::uint8_t {
  none,
  all_reduce,
  broadcast,
  reduce,
  all_gather,
  barrier
};

// Phases of one optimizer step, in the order in which they usually run.
enum class Phase : std::uint8_t {
  data,       // batch to the device
  scatter,    // DP: input chunks to the devices
  broadcast,  // DP: parameters to the replicas; DDP: buffers from rank 0
  forward,
  gather,  // DP: outputs to the output device
  loss,
  backward,
  reduce,  // DP: gradients to the primary device; DDP: all-reduce of buckets
  optimizer,
  other,
};
inline constexpr int kPhaseCount = 10;
const char* phase_name(Phase phase);

enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimizer_state,
  buckets,      // DDP gradient buckets, DP coalesced broadcast and reduce buffers
  activations,  // saved for backward and temporaries
  inputs,
  gathered_outputs,
  buffers,  // module buffers such as BatchNorm statistics
  other,
};
inline constexpr int kMemoryCategoryCount = 9;
const char* memory_category_name(MemoryCategory category);

enum class DType : std::uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  int64,
  int32,
  uint8,
  boolean,
  other,
  tfloat32,  // never recorded: float32 whose products may use the GPU's TF32, simulator/what_if.hpp
};
const char* dtype_name(DType dtype);

struct Operation {
  OpKind kind = OpKind::kernel;
  CollectiveKind collective = CollectiveKind::none;
  Phase phase = Phase::other;
  DType dtype = DType::float32;
  std::uint32_t name = 0;   // index into OperationGraph::names, e.g. "aten::addmm"
  std::uint32_t shape = 0;  // index into OperationGraph::names, e.g. "[32,512]x[512,10]"; 0 = ""
  std::int32_t device = kNone;    // device index within the recorded process; kNone = host
  std::int32_t stream = 0;        // 0 compute, 1 communication, 2 host-to-device, 3 device-to-host
  std::int32_t peer = kNone;      // copy: destination device (kNone = host memory)
  std::uint32_t host_thread = 0;  // index into OperationGraph::host_threads; the issuing thread
  std::uint32_t group = 0;        // collective: members with the same group (> 0) run as one
  std::int32_t root = kNone;      // broadcast and reduce: root device (DP) or rank (DDP)
  bool across_ranks = false;      // collective between the ranks of a DDP job, not between devices
  bool blocking = false;          // the host thread waits until this operation has finished
  std::uint16_t launches = 1;     // GPU kernels this operation launches
  double flops = 0;               // floating-point operations
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_moved = 0;  // copy: bytes over the link; collective: payload per rank
  std::uint32_t host_items =
      0;  // host: modules replicated, graph nodes walked, parameters reset...
  std::vector<std::uint32_t>
      device_deps;  // operations that must have finished before this one starts
  std::vector<std::uint32_t>
      issue_deps;  // operations that must have been issued before this one is
};

// One allocation on a device. Indices are into OperationGraph::operations: memory is taken when
// `alloc_op` is issued and given back when `free_op` is issued, as the CUDA caching allocator does.
struct Allocation {
  std::int32_t device = 0;
  MemoryCategory category = MemoryCategory::other;
  std::uint64_t bytes = 0;        // rounded up to 512 B
  std::int64_t alloc_op = kNone;  // kNone: live when the step began
  std::int64_t free_op = kNone;   // kNone: still live when the step ended
};

struct OperationGraph {
  // --- what was recorded
  std::string model;
  std::string strategy;           // as in case names
  std::int64_t global_batch = 0;  // samples per optimizer step over all GPUs
  std::int32_t devices = 1;       // devices of the recorded process
  std::int32_t world_size = 1;    // ranks of the job; > 1 only for `distributed`
  std::int32_t rank = 0;
  std::int64_t parameter_count = 0;
  std::int64_t module_count = 0;  // sub-modules, leaves and containers, without the root

  std::vector<std::string> names{""};
  std::vector<std::string> host_threads;  // canonical names: "main", "replica:1", "backward:0"
  // In a canonical topological order: dependencies point backwards, operations of one host thread
  // keep their issue order, ties are broken by host thread index.
  std::vector<Operation> operations;
  std::vector<Allocation> allocations;

  // Current and peak bytes of one device by walking the allocations in operation order.
  struct Peak {
    std::uint64_t bytes = 0;
    std::int64_t at_op = kNone;
    std::uint64_t by_category[kMemoryCategoryCount] = {};
  };
  Peak peak_memory(std::int32_t device) const;
};

}  // namespace bench::simulator
