// Seeded random operation graphs for the simulator's property tests: several devices and host
// threads, copies in every direction, collectives, syncs, and dependencies across all of them.
#pragma once

#include "simulator/operation_graph.hpp"

#include <cstdint>

namespace bench::simulator {

// A DataParallel-like process with 1 to 4 devices, or a rank of a distributed job.
OperationGraph random_graph(std::uint64_t seed);

// A chain of forward, backward and optimizer kernels like a ResNet-50's, with DDP buckets when
// `world_size` is above 1; `kernels` operations in all, more or less.
OperationGraph layered_graph(int kernels, int world_size);

}  // namespace bench::simulator
