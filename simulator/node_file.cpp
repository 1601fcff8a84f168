#include "simulator/machine_files.hpp"

#include <algorithm>

namespace bench::simulator {
namespace {

constexpr double kNsPerUs = 1000;
constexpr std::int32_t kMaxGpus = 1024;
constexpr std::int32_t kMaxNodes = 1 << 16;

void parse_nvlink(TomlSection& node_section, NodeSpec& node, const GpuSpec& gpu) {
  const toml::table* table = node_section.table("nvlink");
  if (table == nullptr) return;
  TomlSection section(*table, node_section.file(), "nvlink");
  section.read_provenance(&node_section);
  section.text_or("source", "");
  node.nvlink = parse_nvlink_kind(section, "kind");
  for (const auto& row : section.rows_or_empty("pairs")) {
    if (row.size() != 3) section.fail("pairs", "pairs: expected [GPU, GPU, number of NVLinks]");
    node.nvlink_pairs.push_back({row[0], row[1], row[2]});
  }
  if (node.nvlink != NvlinkKind::none && gpu.nvlink_links == 0) {
    section.fail("kind", "kind: " + gpu.title + " has no NVLink");
  }
  if ((node.nvlink == NvlinkKind::mesh) == node.nvlink_pairs.empty()) {
    section.fail("kind", "kind: a mesh needs pairs, and only a mesh has them");
  }
  check_nvlink_pairs(node, gpu, section);
  section.finish();
}

// A link of the catalogue by name, or its bandwidth as a number.
LinkSpec link_or_rate(TomlSection& section, const char* link_key, const char* rate_key,
                      const MachineLibrary& library) {
  const bool named = section.has(link_key);
  if (!section.has(rate_key)) {
    if (!named) {
      section.fail(link_key, std::string("missing key '") + link_key + "' in [" + section.name() +
                                 "], or '" + rate_key + "' with its bandwidth");
    }
    return library.link(section.text(link_key), section.where(link_key));
  }
  if (named) {
    section.fail(rate_key, std::string(rate_key) + ": contradicts " + link_key +
                               ", which has a bandwidth of its own; keep one of them");
  }
  return {section.quantity(rate_key, kLeastRate, kMaxGbPerSecond), {}};
}

void parse_pcie(TomlSection& node_section, NodeSpec& node, GpuSpec& gpu) {
  const toml::table* table = node_section.table("pcie");
  if (table == nullptr) {
    node_section.fail("pcie", "missing table [pcie]: without it no GPU is connected");
  }
  TomlSection section(*table, node_section.file(), "pcie");
  section.read_provenance(&node_section);
  section.text_or("source", "");
  // Slots that are narrower than the cards.
  gpu.pcie_bandwidth = section.quantity_or(
      "gb_per_s", gpu.pcie_bandwidth, gpu.pcie_bandwidth.provenance, kLeastRate, kMaxGbPerSecond);
  node.peer_to_peer = section.boolean_or("peer_to_peer", true);
  node.peer_to_peer_across_sockets =
      section.boolean_or("peer_to_peer_across_sockets", node.peer_to_peer);
  if (node.peer_to_peer_across_sockets && !node.peer_to_peer) {
    section.fail("peer_to_peer_across_sockets",
                 "peer_to_peer_across_sockets: contradicts peer_to_peer = false");
  }
  node.staged_bandwidth = section.quantity_or("staged_gb_per_s", kStagedShare * gpu.pcie_bandwidth,
                                              Provenance::scaled, kLeastRate, kMaxGbPerSecond);
  node.pcie_switches = section.rows_or_empty("switches");
  node.switch_socket = section.integers_or_empty("switch_sockets");
  check_pcie_switches(node, section);
  section.finish();
}

void parse_host(TomlSection& node_section, NodeSpec& node, const MachineLibrary& library) {
  const toml::table* table = node_section.table("host");
  if (table == nullptr) {
    if (node.sockets > 1) {
      node_section.fail("host", "missing table [host] with the socket_link of two sockets");
    }
    return;
  }
  TomlSection section(*table, node_section.file(), "host");
  section.read_provenance(&node_section);
  section.text_or("source", "");
  const bool linked = section.has("socket_link") || section.has("socket_gb_per_s");
  if (node.sockets > 1 || linked) {
    node.socket_bandwidth =
        link_or_rate(section, "socket_link", "socket_gb_per_s", library).bandwidth;
  }
  node.intel_p2p_penalty = section.boolean_or("intel_p2p_penalty", false);
  node.host_slowdown = section.quantity_or("slowdown", 1, Provenance::specification, 0, 1000);
  node.rank_jitter = section.quantity_or("rank_jitter", kRankJitter, Provenance::scaled, -1e-9, 1);
  section.finish();
}

void parse_network(TomlSection& node_section, NodeSpec& node, const MachineLibrary& library) {
  const toml::table* table = node_section.table("network");
  if (table == nullptr) return;
  TomlSection section(*table, node_section.file(), "network");
  section.read_provenance(&node_section);
  section.text_or("source", "");
  const LinkSpec link = link_or_rate(section, "link", "gb_per_s", library);
  node.nics = section.integer("nics", 1, kMaxGpus);
  node.nic_bandwidth = link.bandwidth;
  node.nic_latency_ns = link.latency_ns;
  node.nic_switch = section.integers_or_empty("nic_switches");
  check_nic_switches(node, section);
  section.finish();
}

GpuSpec parse_gpu_of_node(TomlSection& section, const MachineLibrary& library) {
  const toml::table* table = section.table_or_null("gpu");
  if (table == nullptr) return library.gpu(section.text("gpu"), section.where("gpu"));
  TomlSection own(*table, section.file(), "gpu");
  GpuSpec gpu = parse_gpu(own, library);
  gpu.name = gpu.title;
  return gpu;
}

void parse_collectives(TomlSection& section, Machine& machine, const MachineLibrary& library) {
  for (const std::string& name : section.texts_or_empty("collectives")) {
    machine.collectives.push_back(library.collective(name, section.where("collectives")));
  }
  const toml::array* inline_curves = section.tables("collective");
  if (inline_curves == nullptr) return;
  for (const toml::node& item : *inline_curves) {
    TomlSection curve(*item.as_table(), section.file(), "collective");
    machine.collectives.push_back(parse_collective(curve));
  }
}

}  // namespace

NvlinkKind parse_nvlink_kind(TomlSection& section, const char* key) {
  const std::string kind = section.text(key);
  if (kind == "none") return NvlinkKind::none;
  if (kind == "mesh") return NvlinkKind::mesh;
  if (kind == "nvswitch") return NvlinkKind::nvswitch;
  section.fail(key, std::string(key) + ": expected none, mesh or nvswitch, found " + kind);
}

CollectiveCurve parse_collective(TomlSection& section) {
  section.read_provenance();
  CollectiveCurve curve;
  curve.name = section.text("title");
  curve.source = section.text("source");
  curve.ranks = section.integer("ranks", 2, 1 << 20);
  curve.nodes = section.integer_or("nodes", 1, 1, curve.ranks);
  curve.compute_capability = section.number("compute_capability");
  const Quantity ring = section.quantity("ring_gb_per_s", kLeastRate, kMaxGbPerSecond);
  curve.ring_gb_per_s = ring;
  if (curve.nodes > 1) curve.network_gb_per_s = section.number("network_gb_per_s");
  curve.nvlink = section.boolean_or("nvlink", true);
  curve.reduces_in_switch = section.boolean_or("reduces_in_switch", false);
  curve.points = section.curve("all_reduce");
  if (curve.points.size() < 2)
    section.fail("all_reduce", "all_reduce: expected two points or more");
  for (auto& [bytes, time] : curve.points) time *= kNsPerUs;
  curve.provenance = ring.provenance;
  section.finish();
  return curve;
}

Machine parse_node(TomlSection& section, const MachineLibrary& library) {
  section.read_provenance();
  Machine machine;
  NodeSpec& node = machine.node;
  node.title = section.text("title");
  node.source = section.text_or("source", "");
  machine.gpu = parse_gpu_of_node(section, library);
  node.gpus = section.integer("gpus", 1, kMaxGpus);
  machine.node_count = section.integer_or("nodes", 1, 1, kMaxNodes);
  parse_nvlink(section, node, machine.gpu);
  parse_pcie(section, node, machine.gpu);
  parse_host(section, node, library);
  parse_network(section, node, library);
  parse_collectives(section, machine, library);
  if (machine.node_count > 1 && node.nics == 0) {
    section.fail("nodes", "nodes: several nodes need a table [network]");
  }
  section.finish();
  return machine;
}

void check_nvlink_pairs(const NodeSpec& node, const GpuSpec& gpu, const TomlSection& section) {
  std::vector<std::int32_t> used(static_cast<std::size_t>(node.gpus), 0);
  std::vector<std::pair<std::int32_t, std::int32_t>> seen;
  for (const NvlinkPair& pair : node.nvlink_pairs) {
    const std::string name =
        "pairs: [" + std::to_string(pair.a) + ", " + std::to_string(pair.b) + "]";
    if (pair.a == pair.b) section.fail("pairs", name + " links a GPU to itself");
    if (std::max(pair.a, pair.b) >= node.gpus) {
      section.fail("pairs", name + " is a link to nowhere: the node has GPUs 0 to " +
                                std::to_string(node.gpus - 1));
    }
    if (pair.links < 1) section.fail("pairs", name + " has no links");
    const auto key = std::minmax(pair.a, pair.b);
    if (std::find(seen.begin(), seen.end(), std::pair(key.first, key.second)) != seen.end()) {
      section.fail("pairs", name + " is listed twice");
    }
    seen.emplace_back(key.first, key.second);
    for (const std::int32_t end : {pair.a, pair.b}) {
      std::int32_t& count = used[static_cast<std::size_t>(end)];
      count += pair.links;
      if (count <= gpu.nvlink_links) continue;
      section.fail("pairs", name + ": GPU " + std::to_string(end) + " would need " +
                                std::to_string(count) + " NVLinks, " + gpu.title + " has " +
                                std::to_string(gpu.nvlink_links));
    }
  }
}

void check_pcie_switches(NodeSpec& node, const TomlSection& section) {
  std::vector<bool> placed(static_cast<std::size_t>(node.gpus), false);
  for (const auto& gpus : node.pcie_switches) {
    for (const std::int32_t gpu : gpus) {
      if (gpu >= node.gpus) {
        section.fail("switches", "switches: GPU " + std::to_string(gpu) +
                                     " is not there: the node has GPUs 0 to " +
                                     std::to_string(node.gpus - 1));
      }
      if (placed[static_cast<std::size_t>(gpu)]) {
        section.fail("switches",
                     "switches: GPU " + std::to_string(gpu) + " is behind two switches");
      }
      placed[static_cast<std::size_t>(gpu)] = true;
    }
  }
  for (std::size_t gpu = 0; gpu < placed.size(); ++gpu) {
    if (!placed[gpu]) {
      section.fail("switches", "switches: GPU " + std::to_string(gpu) + " is behind none");
    }
  }
  if (node.switch_socket.size() != node.pcie_switches.size()) {
    section.fail("switch_sockets", "switch_sockets: expected " +
                                       std::to_string(node.pcie_switches.size()) +
                                       " sockets, one for each switch");
  }
  const auto last = std::max_element(node.switch_socket.begin(), node.switch_socket.end());
  node.sockets = last == node.switch_socket.end() ? 1 : *last + 1;
  if (node.sockets > 64) section.fail("switch_sockets", "switch_sockets: at most 64 sockets");
  for (std::int32_t socket = 0; socket < node.sockets; ++socket) {
    const auto& all = node.switch_socket;
    if (all.empty() || std::find(all.begin(), all.end(), socket) != all.end()) continue;
    section.fail("switch_sockets", "switch_sockets: no switch on socket " + std::to_string(socket) +
                                       "; sockets count from 0");
  }
}

void check_nic_switches(const NodeSpec& node, const TomlSection& section) {
  if (node.nic_switch.empty()) return;
  if (static_cast<std::int32_t>(node.nic_switch.size()) != node.nics) {
    section.fail("nic_switches", "nic_switches: expected " + std::to_string(node.nics) +
                                     " switches, one for each network adapter");
  }
  const auto switches = static_cast<std::int32_t>(node.pcie_switches.size());
  for (const std::int32_t index : node.nic_switch) {
    if (index < switches) continue;
    section.fail("nic_switches", "nic_switches: switch " + std::to_string(index) +
                                     " is not there: [pcie] has switches 0 to " +
                                     std::to_string(switches - 1));
  }
}

}  // namespace bench::simulator
