#include "simulator/topology.hpp"

#include "bench/core/error.hpp"
#include "simulator/nvlink_rings.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace bench::simulator {
namespace {

// Peer traffic through an Intel root complex costs 6/5 of its bytes (NCCL 2.30.7 src/graph/topo.h).
constexpr double kIntelPenalty = 6.0 / 5.0;

}  // namespace

Topology::Topology(const Machine& machine, std::vector<int> gpus)
    : machine_(machine), gpus_(std::move(gpus)) {
  std::vector<int> sorted = gpus_;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw UsageError("a GPU is listed twice");
  }
  for (const int gpu : gpus_) {
    if (gpu >= 0 && gpu < machine.gpu_count()) continue;
    throw UsageError("GPU " + std::to_string(gpu) + " is not in " + machine.name +
                     ", which has GPUs 0 to " + std::to_string(machine.gpu_count() - 1));
  }
  for (const int gpu : gpus_) places_.push_back(place_of(gpu));
  describe_job();
}

Topology::Place Topology::place_of(std::int32_t physical) const {
  const NodeSpec& node = machine_.node;
  Place place{physical / node.gpus, physical % node.gpus, 0, 0};
  for (std::size_t i = 0; i < node.pcie_switches.size(); ++i) {
    const auto& gpus = node.pcie_switches[i];
    if (std::find(gpus.begin(), gpus.end(), place.gpu) == gpus.end()) continue;
    place.switch_index = static_cast<std::int32_t>(i);
    place.socket = node.switch_socket[i];
  }
  return place;
}

void Topology::describe_job() {
  std::map<std::int32_t, std::vector<std::int32_t>> by_node;
  for (const Place& place : places_) by_node[place.node].push_back(place.gpu);
  job_.ranks = size();
  job_.nodes = static_cast<std::int32_t>(by_node.size());
  job_.compute_capability = machine_.gpu.compute_capability;
  job_.nvlink = true;
  job_.ring_gb_per_s = 0;
  job_.network_gb_per_s = 0;
  // Equal nodes are common: the ring of one set of GPUs is searched once.
  std::map<std::vector<std::int32_t>, std::pair<double, bool>> rings;
  for (const auto& [node, gpus] : by_node) {
    auto& [rate, nvlink] = rings[gpus];
    if (rate == 0) rate = ring_gb_per_s(gpus, &nvlink);
    const bool slower = job_.ring_gb_per_s == 0 || rate < job_.ring_gb_per_s;
    if (slower) job_.ring_gb_per_s = rate;
    job_.nvlink = job_.nvlink && nvlink;
    if (job_.nodes == 1) continue;
    // A GPU drives the NICs beside it: fewer GPUs than the node has reach fewer NICs.
    const double share = static_cast<double>(gpus.size()) / machine_.node.gpus;
    const double nics = std::max(1.0, machine_.node.nics * share);
    const double network = nics * machine_.node.nic_bandwidth;
    if (job_.network_gb_per_s == 0 || network < job_.network_gb_per_s) {
      job_.network_gb_per_s = network;
    }
  }
  job_.reduces_in_switch =
      machine_.gpu.reduces_in_switch && machine_.node.nvlink == NvlinkKind::nvswitch;
}

double Topology::pcie_hop_gb_per_s(std::int32_t a, std::int32_t b) const {
  const NodeSpec& node = machine_.node;
  const Place from = place_of(a);
  const Place to = place_of(b);
  double rate = machine_.gpu.pcie_bandwidth;
  if (from.socket != to.socket) rate = std::min(rate, node.socket_bandwidth.value);
  if (!node.peer_to_peer) return std::min(rate, node.staged_bandwidth.value);
  if (from.switch_index != to.switch_index && node.intel_p2p_penalty) rate /= kIntelPenalty;
  return rate;
}

double Topology::ring_gb_per_s(const std::vector<std::int32_t>& gpus, bool* nvlink) const {
  const NodeSpec& node = machine_.node;
  const double per_link = machine_.gpu.nvlink_bandwidth;
  *nvlink = true;
  if (gpus.size() < 2) {
    // Alone in its node: the way to the NICs is PCIe.
    *nvlink = machine_.gpu.nvlink_links > 0;
    return machine_.gpu.pcie_bandwidth;
  }
  if (node.nvlink == NvlinkKind::nvswitch) return machine_.gpu.nvlink_links * per_link;
  if (node.nvlink == NvlinkKind::mesh) {
    const std::int32_t rings = count_nvlink_rings(node.nvlink_pairs, gpus);
    if (rings > 0) return rings * per_link;
  }
  *nvlink = false;
  double slowest = machine_.gpu.pcie_bandwidth;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    slowest = std::min(slowest, pcie_hop_gb_per_s(gpus[i], gpus[(i + 1) % gpus.size()]));
  }
  return slowest;
}

std::uint32_t Topology::link(const std::string& name, double gb_per_s) const {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].name == name) return static_cast<std::uint32_t>(i);
  }
  links_.push_back({name, gb_per_s, name.find("pcie switch") != std::string::npos});
  return static_cast<std::uint32_t>(links_.size() - 1);
}

void Topology::host_path(const Place& gpu, bool up, std::vector<std::uint32_t>& out) const {
  const std::string node = "node " + std::to_string(gpu.node) + " ";
  const std::string direction = up ? " up" : " down";
  const double pcie = machine_.gpu.pcie_bandwidth;
  const std::uint32_t port = link(node + "pcie gpu " + std::to_string(gpu.gpu) + direction, pcie);
  const std::uint32_t bridge =
      link(node + "pcie switch " + std::to_string(gpu.switch_index) + direction, pcie);
  out.push_back(up ? port : bridge);
  out.push_back(up ? bridge : port);
}

std::vector<std::uint32_t> Topology::path(std::int32_t from, std::int32_t to) const {
  std::vector<std::uint32_t> links;
  if (from == to) return links;
  if (from < 0) {
    host_path(places_[static_cast<std::size_t>(to)], false, links);
    return links;
  }
  const Place& a = places_[static_cast<std::size_t>(from)];
  if (to < 0) {
    host_path(a, true, links);
    return links;
  }
  const Place& b = places_[static_cast<std::size_t>(to)];
  const NodeSpec& node = machine_.node;
  const std::string name = "node " + std::to_string(a.node) + " ";
  if (a.node == b.node && node.nvlink == NvlinkKind::nvswitch) {
    const double rate = machine_.gpu.nvlink_links * machine_.gpu.nvlink_bandwidth.value;
    links.push_back(link(name + "nvlink gpu " + std::to_string(a.gpu) + " out", rate));
    links.push_back(link(name + "nvlink gpu " + std::to_string(b.gpu) + " in", rate));
    return links;
  }
  for (const NvlinkPair& pair : node.nvlink_pairs) {
    const bool joins = a.node == b.node && std::minmax(pair.a, pair.b) == std::minmax(a.gpu, b.gpu);
    if (!joins) continue;
    const std::string ends = std::to_string(a.gpu) + "-" + std::to_string(b.gpu);
    links.push_back(link(name + "nvlink " + ends, pair.links * machine_.gpu.nvlink_bandwidth));
    return links;
  }
  const bool one_switch = a.node == b.node && a.switch_index == b.switch_index;
  if (one_switch && node.peer_to_peer) {
    const double pcie = machine_.gpu.pcie_bandwidth;
    links.push_back(link(name + "pcie gpu " + std::to_string(a.gpu) + " up", pcie));
    links.push_back(link(name + "pcie gpu " + std::to_string(b.gpu) + " down", pcie));
    return links;
  }
  host_path(a, true, links);
  if (!node.peer_to_peer) {
    links.push_back(
        link(name + "host staging of gpu " + std::to_string(a.gpu), node.staged_bandwidth));
  } else if (node.intel_p2p_penalty) {
    links.push_back(link(name + "root complex from switch " + std::to_string(a.switch_index),
                         machine_.gpu.pcie_bandwidth / kIntelPenalty));
  }
  if (a.node != b.node) {
    const double rate = node.nics * node.nic_bandwidth.value;
    links.push_back(link(name + "network out", rate));
    links.push_back(link("node " + std::to_string(b.node) + " network in", rate));
  } else if (a.socket != b.socket) {
    links.push_back(
        link(name + "socket " + std::to_string(a.socket) + "-" + std::to_string(b.socket),
             node.socket_bandwidth));
  }
  host_path(b, false, links);
  return links;
}

std::int32_t Topology::sharing_switch(std::int32_t local) const {
  const Place& own = places_[static_cast<std::size_t>(local)];
  return static_cast<std::int32_t>(
      std::count_if(places_.begin(), places_.end(), [&](const Place& place) {
        return place.node == own.node && place.switch_index == own.switch_index;
      }));
}

}  // namespace bench::simulator
