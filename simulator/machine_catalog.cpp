#include "bench/core/embedded_text.hpp"
#include "bench/core/error.hpp"
#include "bench/core/file_text.hpp"
#include "bench/core/nearest.hpp"
#include "simulator/machine_files.hpp"
#include "simulator/mixed_machine.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <span>

namespace bench::simulator {

std::span<const EmbeddedText> embedded_gpus();
std::span<const EmbeddedText> embedded_nodes();
std::span<const EmbeddedText> embedded_links();
std::span<const EmbeddedText> embedded_collectives();

namespace {

struct Folder {
  const char* name;
  const char* what;  // in messages: "unknown GPU ..."
  std::span<const EmbeddedText> (*files)();
};
constexpr Folder kGpus{"gpus", "GPU", embedded_gpus};
constexpr Folder kNodes{"nodes", "node", embedded_nodes};
constexpr Folder kLinks{"links", "link", embedded_links};
constexpr Folder kCollectives{"collectives", "collective", embedded_collectives};

std::string stem_of(std::string_view file) { return std::string(file.substr(0, file.rfind('.'))); }

std::string shown_path(const Folder& folder, std::string_view file) {
  return "machines/" + std::string(folder.name) + "/" + std::string(file);
}

std::vector<std::string> aliases_of(const EmbeddedText& file) {
  const toml::table table = parse_toml(file.text, shown_path(kGpus, file.name));
  return TomlSection(table, std::string(file.name), "").texts_or_empty("aliases");
}

const EmbeddedText* find_file(const Folder& folder, const std::string& name) {
  for (const EmbeddedText& file : folder.files()) {
    if (stem_of(file.name) == name) return &file;
  }
  return nullptr;
}

const EmbeddedText* find_gpu_file(const std::string& name) {
  if (const EmbeddedText* file = find_file(kGpus, name)) return file;
  for (const EmbeddedText& file : embedded_gpus()) {
    const std::vector<std::string> aliases = aliases_of(file);
    if (std::find(aliases.begin(), aliases.end(), name) != aliases.end()) return &file;
  }
  return nullptr;
}

std::vector<std::string> names_in(const Folder& folder) {
  std::vector<std::string> names;
  for (const EmbeddedText& file : folder.files()) names.push_back(stem_of(file.name));
  return names;
}

const EmbeddedText& require_file(const Folder& folder, const std::string& name,
                                 const std::string& where) {
  const bool gpus = folder.files == kGpus.files;
  const EmbeddedText* file = gpus ? find_gpu_file(name) : find_file(folder, name);
  if (file == nullptr) {
    throw UsageError(where + unknown_name_message(folder.what, name, names_in(folder)));
  }
  return *file;
}

// Holds a parsed catalogue file for as long as a section refers to it.
struct ParsedFile {
  ParsedFile(std::string_view text, const std::string& file)
      : table(parse_toml(text, file)), section(table, file, "") {}
  toml::table table;
  TomlSection section;
};

MachineLibrary catalogue();

GpuSpec load_gpu(const std::string& name, const std::string& where) {
  const EmbeddedText& file = require_file(kGpus, name, where);
  ParsedFile parsed(file.text, shown_path(kGpus, file.name));
  GpuSpec gpu = parse_gpu(parsed.section, catalogue());
  gpu.name = stem_of(file.name);
  return gpu;
}

LinkSpec load_link(const std::string& name, const std::string& where) {
  const EmbeddedText& file = require_file(kLinks, name, where);
  ParsedFile parsed(file.text, shown_path(kLinks, file.name));
  return parse_link(parsed.section);
}

CollectiveCurve load_collective(const std::string& name, const std::string& where) {
  const EmbeddedText& file = require_file(kCollectives, name, where);
  ParsedFile parsed(file.text, shown_path(kCollectives, file.name));
  return parse_collective(parsed.section);
}

MachineLibrary catalogue() { return {load_gpu, load_link, load_collective}; }

Machine load_node(const std::string& name, const std::string& where) {
  const EmbeddedText& file = require_file(kNodes, name, where);
  ParsedFile parsed(file.text, shown_path(kNodes, file.name));
  Machine machine = parse_node(parsed.section, catalogue());
  machine.node.name = name;
  return machine;
}

// Adapters behind a switch that goes go with it; one stays, because the node has a network.
void drop_nics_of_switch(NodeSpec& node, std::int32_t index) {
  if (node.nic_switch.empty()) return;
  std::erase(node.nic_switch, index);
  for (std::int32_t& at : node.nic_switch) at -= at > index ? 1 : 0;
  if (node.nic_switch.empty()) node.nic_switch.push_back(0);
  node.nics = static_cast<std::int32_t>(node.nic_switch.size());
}

// The first `count` GPUs of a node; what belonged to the others goes with them.
void shrink_node(NodeSpec& node, std::int32_t count) {
  std::erase_if(node.nvlink_pairs,
                [&](const NvlinkPair& pair) { return std::max(pair.a, pair.b) >= count; });
  for (std::size_t i = node.pcie_switches.size(); i-- > 0;) {
    auto& gpus = node.pcie_switches[i];
    std::erase_if(gpus, [&](std::int32_t gpu) { return gpu >= count; });
    if (!gpus.empty()) continue;
    drop_nics_of_switch(node, static_cast<std::int32_t>(i));
    node.pcie_switches.erase(node.pcie_switches.begin() + static_cast<std::ptrdiff_t>(i));
    node.switch_socket.erase(node.switch_socket.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (node.nvlink == NvlinkKind::mesh && node.nvlink_pairs.empty()) node.nvlink = NvlinkKind::none;
  node.gpus = count;
}

// One root port for each GPU and four GPUs on a socket: the plainest server board. The socket link
// is the commonest of its generation, because nothing better is known.
void wire_plainly(Machine& machine, std::int32_t count, const DefaultWiring& wiring) {
  constexpr std::int32_t kGpusPerSocket = 4;
  NodeSpec& node = machine.node;
  node.gpus = count;
  node.peer_to_peer = wiring.peer_to_peer;
  node.staged_bandwidth = {kStagedShare * machine.gpu.pcie_bandwidth, Provenance::scaled};
  node.rank_jitter = {kRankJitter, Provenance::scaled};
  for (std::int32_t gpu = 0; gpu < count; ++gpu) {
    node.pcie_switches.push_back({gpu});
    node.switch_socket.push_back(gpu / kGpusPerSocket);
  }
  node.sockets = (count - 1) / kGpusPerSocket + 1;
  node.socket_bandwidth = load_link("socket-skylake-upi", "").bandwidth;
}

// `parsed` is a GPU file; `name` is what the machine calls the GPU.
Machine wire_gpus(ParsedFile& parsed, std::int32_t count, const std::string& name,
                  const std::string& asked) {
  constexpr std::int32_t kMostOnPcie = 16;
  const DefaultWiring wiring = parse_default_wiring(parsed.section);
  Machine machine;
  if (!wiring.node.empty()) machine = load_node(wiring.node, wiring.where);
  machine.gpu = parse_gpu(parsed.section, catalogue());
  machine.gpu.name = name;
  const std::int32_t most = wiring.node.empty() ? kMostOnPcie : machine.node.gpus;
  if (count > most) {
    throw UsageError("machine '" + asked + "': one node holds at most " + std::to_string(most) +
                     " " + name +
                     "; ask for several nodes, as 2xdgx-a100, or write a machine file");
  }
  if (wiring.node.empty()) {
    wire_plainly(machine, count, wiring);
  } else {
    shrink_node(machine.node, count);
  }
  machine.node.name = std::to_string(count) + "x" + name;
  machine.node.title = std::to_string(count) + "x " + machine.gpu.title;
  return machine;
}

bool is_file_name(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".toml");
}

// A GPU file describes one GPU, everything else is a node.
bool describes_gpu(const toml::table& table) { return table.contains("memory_gib"); }

// "4xname" -> 4; no count -> 0.
struct CountedName {
  std::int32_t count = 0;
  std::string name;
};

CountedName split_count(const std::string& text) {
  CountedName counted{0, text};
  const char* begin = text.data();
  const auto [end, error] = std::from_chars(begin, begin + text.size(), counted.count);
  const bool is_count = error == std::errc() && end != begin + text.size() && *end == 'x';
  if (!is_count) return {0, text};
  if (counted.count < 1 || counted.count > 65536) {
    throw UsageError("machine '" + text + "': expected a count from 1 to 65536 before the x");
  }
  counted.name = text.substr(static_cast<std::size_t>(end - begin) + 1);
  return counted;
}

Machine load_group_node(const std::filesystem::path& folder, const std::string& name,
                        const std::string& where);

Machine load_file(const std::string& path, std::int32_t count, const std::string& asked) {
  const auto text = file_text(path);
  if (!text) throw UsageError(path + ": cannot read this machine file");
  ParsedFile parsed(*text, path);
  const std::string stem = std::filesystem::path(path).stem().string();
  if (describes_gpu(parsed.table)) {
    return wire_gpus(parsed, std::max(count, 1), stem, asked);
  }
  if (describes_groups(parsed.table)) {
    if (count > 0) {
      throw UsageError("machine '" + asked + "': " + path +
                       " lists groups of nodes; change their numbers there");
    }
    const auto folder = std::filesystem::path(path).parent_path();
    return parse_groups(parsed.section, [&](const std::string& name, const std::string& where) {
      return load_group_node(folder, name, where);
    });
  }
  Machine machine = parse_node(parsed.section, catalogue());
  machine.node.name = stem;
  if (count > 0) machine.node_count = count;
  return machine;
}

// File names are relative to the file that names them.
Machine load_group_node(const std::filesystem::path& folder, const std::string& name,
                        const std::string& where) {
  if (!is_file_name(name)) return load_node(name, where);
  const std::filesystem::path path = folder / name;
  const auto text = file_text(path.string());
  if (!text) throw UsageError(where + "node: cannot read " + path.string());
  ParsedFile parsed(*text, path.string());
  if (describes_gpu(parsed.table) || describes_groups(parsed.table)) {
    throw UsageError(where + "node: " + path.string() + " describes no node");
  }
  Machine machine = parse_node(parsed.section, catalogue());
  machine.node.name = path.stem().string();
  return machine;
}

Machine load_named(const CountedName& counted, const std::string& asked) {
  // Nodes first: aliases of GPUs are looked for in every file.
  const bool node = find_file(kNodes, counted.name) != nullptr;
  const EmbeddedText* gpu = node ? nullptr : find_gpu_file(counted.name);
  if (gpu != nullptr) {
    ParsedFile parsed(gpu->text, shown_path(kGpus, gpu->name));
    return wire_gpus(parsed, std::max(counted.count, 1), stem_of(gpu->name), asked);
  }
  if (!node) {
    std::vector<std::string> known = names_in(kNodes);
    for (const EmbeddedText& file : embedded_gpus()) {
      known.push_back(stem_of(file.name));
      for (std::string& alias : aliases_of(file)) known.push_back(std::move(alias));
    }
    throw UsageError(unknown_name_message("machine", counted.name, known, "bench list machines") +
                     "; <count>x<gpu>, <nodes>x<node> and a TOML file are machines too");
  }
  Machine machine = load_node(counted.name, "");
  machine.node_count = std::max(counted.count, 1);
  return machine;
}

MachineCatalogEntry entry_of(const Machine& machine, const char* kind, const std::string& name) {
  const bool gpu = std::string_view(kind) == "gpu";
  return {name,
          kind,
          gpu ? machine.gpu.title : machine.node.title,
          gpu ? 1 : machine.node.gpus,
          machine.gpu.name,
          machine.gpu.memory_gib.value,
          gpu ? machine.gpu.source : machine.node.source};
}

}  // namespace

Machine load_machine(const std::string& name_or_path) {
  const CountedName counted = split_count(name_or_path);
  Machine machine = is_file_name(counted.name)
                        ? load_file(counted.name, counted.count, name_or_path)
                        : load_named(counted, name_or_path);
  if (machine.node_count > 1 && machine.node.nics == 0) {
    throw UsageError("machine '" + name_or_path + "': " + machine.node.title +
                     " has no network for several nodes; add a table [network] to its file");
  }
  machine.name = name_or_path;
  if (!machine.groups.empty()) return machine;
  machine.title = machine.node.title;
  if (machine.node_count > 1) {
    machine.title = std::to_string(machine.node_count) + " x " + machine.node.title;
  }
  return machine;
}

std::vector<MachineCatalogEntry> machine_catalog() {
  std::vector<MachineCatalogEntry> entries;
  for (const EmbeddedText& file : embedded_nodes()) {
    const std::string name = stem_of(file.name);
    entries.push_back(entry_of(load_node(name, ""), "node", name));
  }
  for (const EmbeddedText& file : embedded_gpus()) {
    const std::string name = stem_of(file.name);
    entries.push_back(entry_of(load_machine(name), "gpu", name));
  }
  return entries;
}

std::vector<CollectiveCurve> collective_catalog() {
  std::vector<CollectiveCurve> curves;
  for (const std::string& name : names_in(kCollectives)) {
    curves.push_back(load_collective(name, ""));
  }
  return curves;
}

std::string machine_file_text(const std::string& catalog_path) {
  for (const Folder& folder : {kGpus, kNodes, kLinks, kCollectives}) {
    for (const EmbeddedText& file : folder.files()) {
      if (std::string(folder.name) + "/" + std::string(file.name) == catalog_path) {
        return std::string(file.text);
      }
    }
  }
  return "";
}

}  // namespace bench::simulator
