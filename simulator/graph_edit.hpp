// What-if edits of a recorded graph: the same step without some of its operations, or with work
// that the recording left out.
#pragma once

#include "simulator/operation_graph.hpp"

namespace bench::simulator {

// Without the operations of a phase; what waited for them waits for nothing in their place.
// Allocations that they made or freed are dropped: the result is for times, not for memory.
OperationGraph without_phase(const OperationGraph& graph, Phase phase);

// The step begins with copies of the input from pageable host memory, one per device, which block
// the main thread: what a training loop without pinned memory does.
OperationGraph with_pageable_input(const OperationGraph& graph, std::uint64_t bytes_per_device);

}  // namespace bench::simulator
