// Seeded random operation graphs for the simulator's property tests: several devices and host
// threads, copies in every direction, collectives, syncs, and dependencies across all of them.
#pragma once

#include "simulator/operation_graph.hpp"

#include <cstdint>

namespace bench::simulator {

// A DataParallel-like process with 1 to 4 devices, or a rank of a distributed job.
OperationGraph random_graph(std::uint64_t seed);

}  // namespace bench::simulator
