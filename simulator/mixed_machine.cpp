#include "simulator/mixed_machine.hpp"

#include <algorithm>

namespace bench::simulator {
namespace {

constexpr std::int32_t kMaxNodes = 1 << 16;

Machine parse_group(const toml::table& table, const std::string& file,
                    const NodeLoader& load_node) {
  TomlSection section(table, file, "group");
  const std::string name = section.text("node");
  Machine group = load_node(name, section.where("node"));
  if (group.node.nics == 0) {
    section.fail("node", "node: " + group.node.title +
                             " has no network, and nothing else joins it to the other nodes; add "
                             "a table [network] to its file");
  }
  group.node_count = section.integer_or("nodes", group.node_count, 1, kMaxNodes);
  section.finish();
  group.name = name;
  return group;
}

std::string title_of(const Machine& group) {
  return std::to_string(group.node_count) + " x " + group.node.title;
}

}  // namespace

bool describes_groups(const toml::table& table) { return table.contains("group"); }

Machine parse_groups(TomlSection& section, const NodeLoader& load_node) {
  const std::string title = section.text_or("title", "");
  std::vector<Machine> groups;
  const toml::array* tables = section.tables("group");
  if (tables == nullptr) section.fail("group", "group: expected tables [[group]]");
  for (const toml::node& item : *tables) {
    Machine group = parse_group(*item.as_table(), section.file(), load_node);
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const Machine& g) { return g.name == group.name; });
    if (same == groups.end()) {
      groups.push_back(std::move(group));
    } else {
      same->node_count += group.node_count;
    }
  }
  section.finish();
  std::string kinds;
  for (Machine& group : groups) {
    group.title = title_of(group);
    kinds += (kinds.empty() ? "" : " + ") + group.title;
  }
  Machine machine = groups.front();
  machine.title = title.empty() ? kinds : title + " (" + kinds + ")";
  if (groups.size() > 1) machine.groups = std::move(groups);
  return machine;
}

}  // namespace bench::simulator
