#include "simulator/job_wiring.hpp"

#include "simulator/nvlink_rings.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace bench::simulator {
namespace {

// Peer traffic through an Intel root complex costs 6/5 of its bytes (NCCL 2.30.7 src/graph/topo.h).
constexpr double kIntelPenalty = 6.0 / 5.0;

// The order in which a ring visits the GPUs: over a bridge where there is one, else to the nearest,
// so that switches and sockets are left as rarely as possible.
std::vector<std::int32_t> ring_order(const NodeSpec& node, std::vector<std::int32_t> gpus) {
  auto distance = [&](std::int32_t from, std::int32_t to) {
    const GpuPlace a = place_in_node(node, from);
    const GpuPlace b = place_in_node(node, to);
    return std::tuple(-nvlinks_between(node, from, to), a.socket != b.socket,
                      a.switch_index != b.switch_index, to);
  };
  std::sort(gpus.begin(), gpus.end());
  for (std::size_t i = 0; i + 1 < gpus.size(); ++i) {
    const auto rest = gpus.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const auto next = std::min_element(rest, gpus.end(), [&](std::int32_t a, std::int32_t b) {
      return distance(gpus[i], a) < distance(gpus[i], b);
    });
    std::rotate(rest, next, next + 1);
  }
  return gpus;
}

// Hops of one ring that share a link. Every hop carries the same bytes at the same time.
class SharedLinks {
 public:
  explicit SharedLinks(const Machine& machine) : machine_(machine), node_(machine.node) {}

  void add_hop(std::int32_t from, std::int32_t to) {
    const std::int32_t nvlinks = nvlinks_between(node_, from, to);
    if (nvlinks > 0) {
      limit(nvlinks * machine_.gpu.nvlink_bandwidth);
      return;
    }
    only_nvlink_ = false;
    const GpuPlace a = place_in_node(node_, from);
    const GpuPlace b = place_in_node(node_, to);
    limit(machine_.gpu.pcie_bandwidth);
    const bool staged = staged_through_host(node_, a, b);
    if (staged) limit(node_.staged_bandwidth);
    if (!staged && a.switch_index == b.switch_index) return;
    if (!staged) limit(machine_.gpu.pcie_bandwidth / root_complex_penalty(node_));
    ++hops_up_[a.switch_index];
    ++hops_down_[b.switch_index];
    if (a.socket != b.socket) ++hops_between_[{a.socket, b.socket}];
  }

  RingWiring wiring() const {
    double rate = slowest_;
    for (const auto* hops : {&hops_up_, &hops_down_}) {
      for (const auto& [index, count] : *hops) {
        rate = std::min(rate, machine_.gpu.pcie_bandwidth / count);
      }
    }
    for (const auto& [sockets, count] : hops_between_) {
      rate = std::min(rate, node_.socket_bandwidth / count);
    }
    return {rate, only_nvlink_};
  }

 private:
  void limit(double gb_per_s) {
    slowest_ = slowest_ == 0 ? gb_per_s : std::min(slowest_, gb_per_s);
  }

  const Machine& machine_;
  const NodeSpec& node_;
  double slowest_ = 0;
  bool only_nvlink_ = true;
  std::map<std::int32_t, std::int32_t> hops_up_;
  std::map<std::int32_t, std::int32_t> hops_down_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> hops_between_;
};

}  // namespace

GpuPlace place_in_node(const NodeSpec& node, std::int32_t gpu) {
  GpuPlace place{gpu, 0, 0};
  for (std::size_t i = 0; i < node.pcie_switches.size(); ++i) {
    const auto& gpus = node.pcie_switches[i];
    if (std::find(gpus.begin(), gpus.end(), gpu) == gpus.end()) continue;
    place.switch_index = static_cast<std::int32_t>(i);
    place.socket = node.switch_socket[i];
  }
  return place;
}

bool staged_through_host(const NodeSpec& node, const GpuPlace& a, const GpuPlace& b) {
  if (!node.peer_to_peer) return true;
  return a.socket != b.socket && !node.peer_to_peer_across_sockets;
}

std::int32_t nvlinks_between(const NodeSpec& node, std::int32_t a, std::int32_t b) {
  for (const NvlinkPair& pair : node.nvlink_pairs) {
    if (std::minmax(pair.a, pair.b) == std::minmax(a, b)) return pair.links;
  }
  return 0;
}

double root_complex_penalty(const NodeSpec& node) {
  return node.intel_p2p_penalty ? kIntelPenalty : 1;
}

RingWiring ring_wiring(const Machine& machine, const std::vector<std::int32_t>& gpus) {
  const NodeSpec& node = machine.node;
  const GpuSpec& gpu = machine.gpu;
  // Alone in its node: the way to the network is PCIe.
  if (gpus.size() < 2) return {gpu.pcie_bandwidth, gpu.nvlink_links > 0};
  if (node.nvlink == NvlinkKind::nvswitch) return {gpu.nvlink_links * gpu.nvlink_bandwidth, true};
  if (node.nvlink == NvlinkKind::mesh) {
    const std::int32_t rings = count_nvlink_rings(node.nvlink_pairs, gpus);
    if (rings > 0) return {rings * gpu.nvlink_bandwidth, true};
  }
  const std::vector<std::int32_t> order = ring_order(node, gpus);
  SharedLinks links(machine);
  for (std::size_t i = 0; i < order.size(); ++i) {
    links.add_hop(order[i], order[(i + 1) % order.size()]);
  }
  return links.wiring();
}

double network_gb_per_s(const Machine& machine, const std::vector<std::int32_t>& gpus) {
  const NodeSpec& node = machine.node;
  const double nic = node.nic_bandwidth;
  const double pcie = machine.gpu.pcie_bandwidth;
  if (node.nic_switch.empty()) {
    // Adapters are spread evenly: fewer GPUs than the node has reach fewer of them.
    const double share = static_cast<double>(gpus.size()) / node.gpus;
    return std::min(std::max(1.0, node.nics * share) * nic,
                    static_cast<double>(gpus.size()) * pcie);
  }
  std::map<std::int32_t, std::int32_t> gpus_behind;
  for (const std::int32_t gpu : gpus) ++gpus_behind[place_in_node(node, gpu).switch_index];
  double rate = 0;
  for (const auto& [index, count] : gpus_behind) {
    const auto nics = std::count(node.nic_switch.begin(), node.nic_switch.end(), index);
    rate += std::min(static_cast<double>(nics) * nic, count * pcie);
  }
  // No adapter beside any of them: one that is elsewhere, through the root complex.
  return rate > 0 ? rate : std::min(nic, pcie / root_complex_penalty(node));
}

}  // namespace bench::simulator
