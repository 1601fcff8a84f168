// All-reduce of float32 over the ranks of a process group, by size: NCCL between GPUs, Gloo between
// processes on a CPU.
#pragma once

#include "training/strategies/trainer.hpp"

#include <functional>
#include <utility>
#include <vector>

namespace bench::training {

// (bytes per rank, nanoseconds), ascending; every rank calls it and gets its own times.
std::vector<std::pair<double, double>> measure_all_reduce(const Placement& placement, bool quick,
                                                          const std::function<void()>& heartbeat);

}  // namespace bench::training
