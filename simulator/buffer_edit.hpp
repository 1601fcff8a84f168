// DDP without its broadcast of buffers, as an edit of a recording with it: the operations that
// send rank 0's buffers before the forward pass go, and the memory that they used.
#pragma once

#include "simulator/operation_graph.hpp"

namespace bench::simulator {

OperationGraph without_buffer_broadcasts(const OperationGraph& graph);

}  // namespace bench::simulator
