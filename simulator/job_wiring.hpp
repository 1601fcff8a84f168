// What NCCL's rings find between the GPUs of one node: NVLink where a ring can stay on it, PCIe or
// host memory where not. Links that several hops of a ring pass (the uplink of a switch, the link
// between two sockets) are shared by them.
#pragma once

#include "simulator/machine.hpp"

#include <cstdint>
#include <vector>

namespace bench::simulator {

// Where a GPU sits in its node.
struct GpuPlace {
  std::int32_t gpu = 0;
  std::int32_t switch_index = 0;
  std::int32_t socket = 0;
};
GpuPlace place_in_node(const NodeSpec& node, std::int32_t gpu);

// Bytes between the two pass host memory: there is no peer-to-peer traffic over PCIe between them.
bool staged_through_host(const NodeSpec& node, const GpuPlace& a, const GpuPlace& b);

// NVLinks that join two GPUs directly; 0 where none do.
std::int32_t nvlinks_between(const NodeSpec& node, std::int32_t a, std::int32_t b);

// What peer traffic that leaves its switch pays at an Intel root complex, as a factor on its bytes.
double root_complex_penalty(const NodeSpec& node);

struct RingWiring {
  double gb_per_s = 0;  // what one GPU sends to its neighbour, over all channels
  bool nvlink = false;  // every hop is NVLink
};
RingWiring ring_wiring(const Machine& machine, const std::vector<std::int32_t>& gpus_of_node);

// What these GPUs of a node reach of its network: each uses the adapters behind its own switch.
double network_gb_per_s(const Machine& machine, const std::vector<std::int32_t>& gpus_of_node);

}  // namespace bench::simulator
