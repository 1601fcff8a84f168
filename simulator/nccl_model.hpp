// NCCL's own cost model: the constants by which it chooses an algorithm (ring, tree, NVLS) and a
// protocol (LL, LL128, Simple). It is good for ratios between topologies, sizes and rank counts; as
// absolute time it lacks launch, synchronisation and ramp-up (see collective_time.hpp).
//
// Source of every constant: NCCL 2.30.7, src/graph/tuning.cc and topo.h.
#pragma once

#include "simulator/operation_graph.hpp"

#include <cstdint>
#include <vector>

namespace bench::simulator {

// What the model needs to know about a group of ranks.
struct NcclTopology {
  std::int32_t ranks = 1;
  std::int32_t nodes = 1;
  double ring_gb_per_s = 0;     // one rank to its neighbour inside a node, all channels
  double network_gb_per_s = 0;  // one node to the next
  double compute_capability = 0;
  bool nvlink = false;  // the ring stays on NVLink inside a node
  bool reduces_in_switch = false;
};

enum class NcclAlgorithm : std::uint8_t { ring, tree, nvls };
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };
const char* nccl_algorithm_name(NcclAlgorithm algorithm);
const char* nccl_protocol_name(NcclProtocol protocol);

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  double latency_ns = 0;
  double gb_per_s = 0;  // algorithm bandwidth: payload bytes over time
  // What the tree's bandwidth was multiplied by for the size of the message, to make it lose where
  // it should; 1 for the others.
  double size_factor = 1;
  double time_ns(double bytes) const { return latency_ns + bytes / gb_per_s; }
};

// Everything NCCL could choose from, and the choice of least time. `topology` has two ranks or
// more.
std::vector<NcclChoice> nccl_choices(CollectiveKind kind, double bytes,
                                     const NcclTopology& topology);
NcclChoice nccl_choice(CollectiveKind kind, double bytes, const NcclTopology& topology);

// Device memory that NCCL takes for its connections, outside PyTorch's allocator. An order of
// magnitude: the number of channels is a guess (see the source).
double nccl_buffer_bytes(const NcclTopology& topology);

// Lower bound on any algorithm without in-network reduction: bytes that one rank must send over the
// bandwidth it has, as nccl-tests' bus bandwidth counts them. Between two nodes a tree could stay a
// little below it; no published sweep does.
double least_collective_ns(CollectiveKind kind, double bytes, const NcclTopology& topology);

}  // namespace bench::simulator
