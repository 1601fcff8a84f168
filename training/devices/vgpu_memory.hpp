// Memory of virtual GPUs: every storage on a vgpu device is a Block, owned by its DataPtr, counted
// on its device and known to the recorder. A Block also holds "twins": the CPU (numeric) and Meta
// (shape) storages over the same memory that kernels of those backends are given.
#pragma once

#include "simulator/operation_graph.hpp"

#include "training/devices/recorder.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace bench::training {

struct AllocationRecord;  // recorder_log.hpp

struct Block {
  std::int32_t device = 0;
  std::uint64_t charged_bytes = 0;  // rounded up to kAllocationUnit
  bool has_values = true;           // false: address space without access rights
  bool defined_values = true;       // false: small memory whose values shape execution made up
  simulator::MemoryCategory category = simulator::MemoryCategory::other;

  c10::Storage cpu_twin;   // null where has_values is false
  c10::Storage meta_twin;  // null under numeric execution

  // Kept by the recorder; valid only for the recording that wrote them.
  std::uint32_t recording = 0;
  AllocationRecord* record = nullptr;
  std::uint32_t writer_recording = 0;
  OpRef last_writer;

  Block* previous = nullptr;  // registry of live blocks
  Block* next = nullptr;
};

// Under shape execution tensors up to this size keep real memory: the Reducer's used-parameter map
// and other bookkeeping tensors are read back.
inline constexpr std::uint64_t kSmallTensorBytes = 4096;

c10::Allocator* vgpu_allocator();

// The block behind a storage, or null where the storage is not on a virtual GPU.
Block* block_of(const c10::StorageImpl& storage);
Block* block_of(const at::Tensor& tensor);

// A storage on `device` that takes over memory a CPU kernel allocated.
c10::Storage adopt_cpu_storage(c10::Storage cpu, int device);
// After a CPU kernel resized the twin: `storage` takes over the new memory.
void follow_resized_twin(c10::StorageImpl& storage);
// Grows or shrinks a storage, keeping its bytes (resize_, UntypedStorage.resize_).
void resize_storage(c10::StorageImpl& storage, std::size_t bytes);

std::uint64_t live_block_count();
// Calls `visit` for every live block while no block is made or released.
void for_each_block(const std::function<void(Block&)>& visit);

}  // namespace bench::training
