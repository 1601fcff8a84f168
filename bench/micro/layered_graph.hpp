// A synthetic operation graph of a given size, for microbenchmarks and tests of the simulator.
#pragma once

#include "simulator/operation_graph.hpp"

namespace bench::simulator {

// A chain of forward, backward and optimizer kernels like a ResNet-50's, with DDP buckets when
// `world_size` is above 1; `kernels` operations in all, more or less.
OperationGraph layered_graph(int kernels, int world_size);

}  // namespace bench::simulator
