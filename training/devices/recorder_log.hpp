// The recorder's inside: logs of host threads and the allocations they made. The vgpu backend
// reports to it through the log_* functions; merge_logs() turns the logs into a graph.
#pragma once

#include "simulator/operation_graph.hpp"

#include "training/devices/recorder.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bench::training {

struct Block;

struct AllocationRecord {
  std::int32_t device = 0;
  simulator::MemoryCategory category = simulator::MemoryCategory::other;
  std::uint64_t bytes = 0;
  OpRef allocated_by;  // invalid: live when the recording began, or not bound yet
  OpRef freed_by;      // invalid: live when it ended
  std::int32_t freed_on = simulator::kNone;  // log of the freeing thread
  std::uint64_t freed_in = 0;                // its call into the engine
  std::vector<OpRef> uses;                   // operations that read or wrote it
};

// An operation with references instead of indices; names are interned when logs are merged.
struct LoggedOperation {
  simulator::Operation op;
  std::string name;
  std::string shape;
  std::vector<OpRef> device_deps;
  std::vector<OpRef> issue_deps;

  // Of operations issued by autograd's device threads: the call into the engine, the node that was
  // evaluated, and same-thread dependencies, which only its reordering needs.
  std::uint64_t backward_id = 0;
  const void* node = nullptr;  // identity only
  std::uint64_t node_sequence = 0;
  std::vector<OpRef> thread_deps;
};

// What one host thread issued, and what its next operation has to carry.
struct HostLog {
  std::string name;
  std::int32_t index = 0;
  std::deque<LoggedOperation> operations;
  std::vector<OpRef> issue_deps;                             // of the next operation
  std::vector<std::pair<std::int32_t, OpRef>> device_waits;  // (device, op): next compute waits
  std::vector<AllocationRecord*> allocations;                // made since the last operation
  std::vector<AllocationRecord*> frees;                      // given back since then
  std::uint64_t backward_id = 0;                             // BackwardScope it last served

  OpRef last_operation() const;
};

// Memory events; no effect while nothing is recorded.
void log_allocation(Block& block);
void log_free(Block& block);

// Appends to the current thread's log. The operation waits on its device for the last writers of
// `reads` and `writes` that ran elsewhere, and becomes the last writer of `writes`.
OpRef log_operation(LoggedOperation operation, std::span<Block* const> reads,
                    std::span<Block* const> writes);

std::uint32_t next_collective_group();

// Logs in a canonical order (sorting backward logs first): topological, ties broken by host thread
// ("main" first, then by name).
simulator::OperationGraph merge_logs(const std::deque<std::unique_ptr<HostLog>>& logs,
                                     const std::deque<AllocationRecord>& allocations);

}  // namespace bench::training
