// Rings through an NVLink mesh. NCCL drives as many edge-disjoint rings as the mesh offers, each at
// the speed of one link: a DGX-1 has six through all eight GPUs, one link between two of them.
#pragma once

#include "simulator/machine.hpp"

#include <cstdint>
#include <vector>

namespace bench::simulator {

// Directed rings through `gpus` (indices in the node) that share no link direction; 0 when NVLink
// does not close one.
std::int32_t count_nvlink_rings(const std::vector<NvlinkPair>& pairs,
                                const std::vector<std::int32_t>& gpus);

}  // namespace bench::simulator
