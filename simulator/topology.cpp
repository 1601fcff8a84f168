#include "simulator/topology.hpp"

#include "bench/core/error.hpp"

#include <algorithm>
#include <map>

namespace bench::simulator {

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
  return {place_in_node(node, physical % node.gpus), physical / node.gpus};
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
  std::map<std::vector<std::int32_t>, RingWiring> rings;
  auto keep_least = [](double& least, double rate) {
    if (least == 0 || rate < least) least = rate;
  };
  for (const auto& [node, gpus] : by_node) {
    RingWiring& ring = rings[gpus];
    if (ring.gb_per_s == 0) ring = ring_wiring(machine_, gpus);
    keep_least(job_.ring_gb_per_s, ring.gb_per_s);
    job_.nvlink = job_.nvlink && ring.nvlink;
    if (job_.nodes == 1) continue;
    keep_least(job_.network_gb_per_s, bench::simulator::network_gb_per_s(machine_, gpus));
  }
  job_.reduces_in_switch =
      machine_.gpu.reduces_in_switch && machine_.node.nvlink == NvlinkKind::nvswitch;
}

std::uint32_t Topology::link(const std::string& name, double gb_per_s) const {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].name == name) return static_cast<std::uint32_t>(i);
  }
  links_.push_back({name, gb_per_s, name.find("pcie switch") != std::string::npos});
  return static_cast<std::uint32_t>(links_.size() - 1);
}

std::string Topology::node_name(const Place& place) {
  return "node " + std::to_string(place.node) + " ";
}

void Topology::host_path(const Place& gpu, bool up, std::vector<std::uint32_t>& out) const {
  const std::string node = node_name(gpu);
  const std::string direction = up ? " up" : " down";
  const double pcie = machine_.gpu.pcie_bandwidth;
  const std::uint32_t port = link(node + "pcie gpu " + std::to_string(gpu.gpu) + direction, pcie);
  const std::uint32_t bridge =
      link(node + "pcie switch " + std::to_string(gpu.switch_index) + direction, pcie);
  out.push_back(up ? port : bridge);
  out.push_back(up ? bridge : port);
}

void Topology::nvlink_path(const Place& a, const Place& b, std::vector<std::uint32_t>& out) const {
  const NodeSpec& node = machine_.node;
  if (a.node != b.node) return;
  const double per_link = machine_.gpu.nvlink_bandwidth;
  const std::string name = node_name(a) + "nvlink ";
  if (node.nvlink == NvlinkKind::nvswitch) {
    const double rate = machine_.gpu.nvlink_links * per_link;
    out.push_back(link(name + "gpu " + std::to_string(a.gpu) + " out", rate));
    out.push_back(link(name + "gpu " + std::to_string(b.gpu) + " in", rate));
    return;
  }
  const std::int32_t links = nvlinks_between(node, a.gpu, b.gpu);
  if (links == 0) return;
  const std::string ends = std::to_string(a.gpu) + "-" + std::to_string(b.gpu);
  out.push_back(link(name + ends, links * per_link));
}

void Topology::between_nodes(const Place& a, const Place& b,
                             std::vector<std::uint32_t>& out) const {
  out.push_back(link(node_name(a) + "network out", network_gb_per_s(machine_, {a.gpu})));
  out.push_back(link(node_name(b) + "network in", network_gb_per_s(machine_, {b.gpu})));
}

std::vector<std::uint32_t> Topology::path(std::int32_t from, std::int32_t to) const {
  std::vector<std::uint32_t> links;
  if (from == to) return links;
  if (from < 0 || to < 0) {
    host_path(places_[static_cast<std::size_t>(std::max(from, to))], to < 0, links);
    return links;
  }
  const Place& a = places_[static_cast<std::size_t>(from)];
  const Place& b = places_[static_cast<std::size_t>(to)];
  const NodeSpec& node = machine_.node;
  nvlink_path(a, b, links);
  if (!links.empty()) return links;
  const double pcie = machine_.gpu.pcie_bandwidth;
  const bool staged = staged_through_host(node, a, b);
  if (a.node == b.node && a.switch_index == b.switch_index && !staged) {
    links.push_back(link(node_name(a) + "pcie gpu " + std::to_string(a.gpu) + " up", pcie));
    links.push_back(link(node_name(a) + "pcie gpu " + std::to_string(b.gpu) + " down", pcie));
    return links;
  }
  host_path(a, true, links);
  if (staged) {
    links.push_back(
        link(node_name(a) + "host staging of gpu " + std::to_string(a.gpu), node.staged_bandwidth));
  } else if (node.intel_p2p_penalty) {
    links.push_back(
        link(node_name(a) + "root complex from switch " + std::to_string(a.switch_index),
             pcie / root_complex_penalty(node)));
  }
  if (a.node != b.node) {
    between_nodes(a, b, links);
  } else if (a.socket != b.socket) {
    const std::string ends = std::to_string(a.socket) + "-" + std::to_string(b.socket);
    links.push_back(link(node_name(a) + "socket " + ends, node.socket_bandwidth));
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
