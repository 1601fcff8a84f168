#include "simulator/nccl_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bench::simulator {
namespace {

constexpr int kProtocols = 3;
enum Generation { kVolta, kAmpere, kHopper, kBlackwell };

// Microseconds by protocol LL, LL128, Simple.
using ByProtocol = std::array<double, kProtocols>;
constexpr ByProtocol kBaseTree{6.8, 14.0, 8.4};
constexpr ByProtocol kBaseRing{6.6, 14.0, 8.4};
constexpr ByProtocol kNvlinkHopTree{0.6, 1.25, 4.0};
constexpr ByProtocol kNvlinkHopRing{0.6, 1.9, 3.4};
constexpr ByProtocol kPcieHopTree{1.0, 1.9, 4.0};
constexpr ByProtocol kPcieHopRing{1.0, 2.5, 5.7};
constexpr ByProtocol kNetHopTree{5.0, 8.5, 14.0};
constexpr ByProtocol kNetHopRing{2.7, 4.0, 14.0};
constexpr double kNvls = 25;
constexpr double kNvlsTreeNet = 20.9;
// Overhead of the network in the host, Intel: intra-node hops of a multi-node ring cost at least
// it.
constexpr double kNetOverhead = 1.0;
constexpr double kNetOverheadSimple = 3 * kNetOverhead;
constexpr double kSimpleRingNodes = 1.4;       // Simple on several nodes
constexpr double kSimpleRingNodesVolta = 1.9;  // before Ampere
constexpr double kSimpleRingNodesFrom = 64;    // bytes per channel and rank

// GB/s by generation, for 1, 2 and more nodes.
using ByNodes = std::array<double, 3>;
constexpr ByNodes kMaxLl[] = {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};
constexpr ByNodes kRingLl128[] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}};
constexpr ByNodes kTreeLl128[] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.7, 20}};
constexpr ByNodes kTreeSimple[] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
constexpr double kLl128Share = 0.92;
constexpr double kTreeShare = 0.92;
constexpr double kTreeLlDivisor = 3.8;
constexpr double kNvlsEfficiencyHopper = 0.85;
constexpr double kNvlsEfficiencyBlackwell = 0.74;
constexpr std::int32_t kNvlsLeastRanks = 5;  // chosen above four GPUs on H200
// Channels are not in the description of a machine; NCCL's search settles near one per 10 GB/s.
constexpr double kGbPerSecondPerChannel = 10;
constexpr double kMaxChannels = 32;
constexpr double kPcieChannels = 2;

// What a channel receives into, for each protocol (NCCL, src/include/device.h and comm.h,
// recalled): 4 MiB for Simple, 8 steps of 512 lines of 8 elements for LL, of 640 of 120 for LL128.
// A ring receives from one peer, a binary tree from two and a half on average.
constexpr double kSimpleBuffer = 4.0 * 1024 * 1024;
constexpr double kLlBuffer = 8.0 * 512 * 8 * 16;
constexpr double kLl128Buffer = 8.0 * 640 * 120 * 8;
constexpr double kConnections = 1 + 2.5;

Generation generation_of(double capability) {
  if (capability >= 10) return kBlackwell;
  if (capability >= 9) return kHopper;
  return capability >= 8 ? kAmpere : kVolta;
}

// Trees lose to chunking at middle sizes: the table of tuning.cc falls to 0.4-0.6 between 32 KB and
// 2 MB and is 1 at 64 B and 256 MB. A straight line in log(size) between those.
double tree_size_factor(double bytes) {
  constexpr double kSmall = 64, kFallen = 32e3, kRising = 2e6, kLarge = 256e6, kLow = 0.5;
  if (bytes <= kSmall || bytes >= kLarge) return 1;
  if (bytes < kFallen) {
    return 1 - (1 - kLow) * std::log(bytes / kSmall) / std::log(kFallen / kSmall);
  }
  if (bytes <= kRising) return kLow;
  return kLow + (1 - kLow) * std::log(bytes / kRising) / std::log(kLarge / kRising);
}

class Model {
 public:
  Model(const NcclTopology& topology, double bytes)
      : topology_(topology),
        bytes_(bytes),
        generation_(generation_of(topology.compute_capability)),
        nodes_index_(std::min(topology.nodes, 3) - 1) {
    bus_ = topology.ring_gb_per_s;
    if (topology.nodes > 1) bus_ = std::min(bus_, topology.network_gb_per_s);
    channels_ = topology.nvlink ? std::clamp(bus_ / kGbPerSecondPerChannel, 1.0, kMaxChannels)
                                : kPcieChannels;
  }

  NcclChoice all_reduce(NcclAlgorithm algorithm, int protocol) const {
    switch (algorithm) {
      case NcclAlgorithm::ring:
        return choice(algorithm, protocol, ring_latency(protocol),
                      ring_bus(protocol) * ranks() / (2 * (ranks() - 1)));
      case NcclAlgorithm::tree: {
        const double factor = tree_size_factor(bytes_);
        NcclChoice tree =
            choice(algorithm, protocol, tree_latency(protocol), tree_bus(protocol) / 2 * factor);
        tree.size_factor = factor;
        return tree;
      }
      case NcclAlgorithm::nvls:
        return choice(algorithm, protocol, nvls_latency(), nvls_gb_per_s());
    }
    return {};
  }

  // Broadcast and reduce: a chain along the ring.
  NcclChoice chain(int protocol) const {
    const double latency =
        kBaseRing[protocol] + ranks() * hop(kNvlinkHopRing, kPcieHopRing)[protocol];
    return choice(NcclAlgorithm::ring, protocol, latency, ring_bus(protocol));
  }

  // All-gather: every rank's part passes every other rank once.
  NcclChoice gather(int protocol) const {
    const double latency =
        kBaseRing[protocol] + (ranks() - 1) * hop(kNvlinkHopRing, kPcieHopRing)[protocol];
    return choice(NcclAlgorithm::ring, protocol, latency, ring_bus(protocol) / (ranks() - 1));
  }

  // The same through the switch, which sends a part to everybody at once: a GPU still receives the
  // parts of all others, and NCCL counts the bandwidth of the whole.
  NcclChoice multicast_gather() const {
    const int simple = static_cast<int>(NcclProtocol::simple);
    const double whole = topology_.ring_gb_per_s * (ranks() - 1) / ranks();
    return choice(NcclAlgorithm::nvls, simple, kNvls, whole / ranks());
  }

  double channels() const { return channels_; }

  bool allows(int protocol) const {
    const bool ll128 = topology_.nvlink && topology_.compute_capability >= 7.0;
    return protocol != static_cast<int>(NcclProtocol::ll128) || ll128;
  }

 private:
  double ranks() const { return topology_.ranks; }
  double nodes() const { return topology_.nodes; }

  const ByProtocol& hop(const ByProtocol& nvlink, const ByProtocol& pcie) const {
    return topology_.nvlink ? nvlink : pcie;
  }

  NcclChoice choice(NcclAlgorithm algorithm, int protocol, double latency_us, double rate) const {
    return {algorithm, static_cast<NcclProtocol>(protocol), latency_us * 1000, rate};
  }

  double ring_latency(int protocol) const {
    const bool simple = protocol == static_cast<int>(NcclProtocol::simple);
    double intra = hop(kNvlinkHopRing, kPcieHopRing)[protocol];
    double latency = kBaseRing[protocol];
    if (topology_.nodes > 1) intra = std::max(intra, simple ? kNetOverheadSimple : kNetOverhead);
    const ByProtocol& net = topology_.ranks == topology_.nodes ? kNetHopTree : kNetHopRing;
    const double inter_steps = topology_.nodes > 1 ? 2 * (nodes() - 1) : 0;
    latency += (2 * (ranks() - 1) - inter_steps) * intra + inter_steps * net[protocol];
    const bool heavy = bytes_ / (channels_ * ranks()) >= kSimpleRingNodesFrom;
    if (simple && topology_.nodes > 1 && heavy) {
      latency *= generation_ == kVolta ? kSimpleRingNodesVolta : kSimpleRingNodes;
    }
    return latency;
  }

  double tree_latency(int protocol) const {
    const double intra = hop(kNvlinkHopTree, kPcieHopTree)[protocol];
    return kBaseTree[protocol] +
           2 * ((ranks() / nodes() - 1) * intra + std::log2(nodes()) * kNetHopTree[protocol]);
  }

  double nvls_latency() const {
    return topology_.nodes == 1 ? kNvls : kNvls + 2 * std::log2(nodes()) * kNvlsTreeNet;
  }

  double ring_bus(int protocol) const {
    if (protocol == static_cast<int>(NcclProtocol::ll)) {
      return std::min(kMaxLl[generation_][nodes_index_], bus_ / 2);
    }
    if (protocol == static_cast<int>(NcclProtocol::ll128)) {
      return std::min(kLl128Share * bus_, channels_ * kRingLl128[generation_][nodes_index_]);
    }
    return bus_;
  }

  double tree_bus(int protocol) const {
    const double simple =
        std::min(kTreeShare * bus_, channels_ * kTreeSimple[generation_][nodes_index_]);
    if (protocol == static_cast<int>(NcclProtocol::ll)) return simple / kTreeLlDivisor;
    if (protocol == static_cast<int>(NcclProtocol::ll128)) {
      const double share = topology_.nodes == 1 ? 7.0 / 9 : 120.0 / 128;
      return std::min(simple * share, channels_ * kTreeLl128[generation_][nodes_index_]);
    }
    return simple;
  }

  // Each GPU sends and receives its payload once; the network still carries a node's share.
  double nvls_gb_per_s() const {
    const double efficiency =
        generation_ >= kBlackwell ? kNvlsEfficiencyBlackwell : kNvlsEfficiencyHopper;
    const double share = (ranks() / nodes() - 1) / (ranks() / nodes());
    const double bus = topology_.ring_gb_per_s * efficiency * share * 2;
    const double inside = bus * ranks() / (2 * (ranks() - 1));
    if (topology_.nodes == 1) return inside;
    return std::min(inside, topology_.network_gb_per_s / 2 * kTreeShare);
  }

  const NcclTopology& topology_;
  double bytes_;
  Generation generation_;
  int nodes_index_;
  double bus_ = 0;
  double channels_ = 1;
};

bool offers_nvls(const NcclTopology& topology) {
  return topology.reduces_in_switch && topology.ranks / topology.nodes >= kNvlsLeastRanks;
}

}  // namespace

const char* nccl_algorithm_name(NcclAlgorithm algorithm) {
  constexpr const char* kNames[] = {"ring", "tree", "nvls"};
  return kNames[static_cast<int>(algorithm)];
}

const char* nccl_protocol_name(NcclProtocol protocol) {
  constexpr const char* kNames[] = {"LL", "LL128", "Simple"};
  return kNames[static_cast<int>(protocol)];
}

std::vector<NcclChoice> nccl_choices(CollectiveKind kind, double bytes,
                                     const NcclTopology& topology) {
  const Model model(topology, bytes);
  std::vector<NcclChoice> choices;
  for (int protocol = 0; protocol < kProtocols; ++protocol) {
    if (!model.allows(protocol)) continue;
    if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) {
      choices.push_back(model.chain(protocol));
    } else if (kind == CollectiveKind::all_gather) {
      choices.push_back(model.gather(protocol));
    } else {
      choices.push_back(model.all_reduce(NcclAlgorithm::ring, protocol));
      choices.push_back(model.all_reduce(NcclAlgorithm::tree, protocol));
    }
  }
  if (kind == CollectiveKind::all_reduce && offers_nvls(topology)) {
    const int simple = static_cast<int>(NcclProtocol::simple);
    choices.push_back(model.all_reduce(NcclAlgorithm::nvls, simple));
  }
  // Broadcast and reduce have no NVLS in NCCL; between nodes it needs a network that reduces.
  if (kind == CollectiveKind::all_gather && offers_nvls(topology) && topology.nodes == 1) {
    choices.push_back(model.multicast_gather());
  }
  return choices;
}

NcclChoice nccl_choice(CollectiveKind kind, double bytes, const NcclTopology& topology) {
  const std::vector<NcclChoice> choices = nccl_choices(kind, bytes, topology);
  return *std::min_element(choices.begin(), choices.end(),
                           [&](const NcclChoice& a, const NcclChoice& b) {
                             return a.time_ns(bytes) < b.time_ns(bytes);
                           });
}

double nccl_buffer_bytes(const NcclTopology& topology) {
  if (topology.ranks < 2) return 0;
  return Model(topology, 1).channels() * kConnections *
         (kSimpleBuffer + kLlBuffer + (topology.nvlink ? kLl128Buffer : 0));
}

double least_collective_ns(CollectiveKind kind, double bytes, const NcclTopology& topology) {
  double bus = topology.ring_gb_per_s;
  if (topology.nodes > 1) bus = std::min(bus, topology.network_gb_per_s);
  const double ranks = topology.ranks;
  switch (kind) {
    case CollectiveKind::none:
    case CollectiveKind::barrier:
      return 0;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return bytes / bus;
    case CollectiveKind::all_gather:
      return (ranks - 1) * bytes / bus;
    case CollectiveKind::all_reduce:
      break;
  }
  // In-network reduction sends a payload once instead of 2 (n - 1) / n times.
  const double passes = topology.reduces_in_switch ? (ranks - 1) / ranks : 2 * (ranks - 1) / ranks;
  return passes * bytes / bus;
}

}  // namespace bench::simulator
