// Machine files that list nodes of several kinds: [[group]] tables, each a node and how many there
// are of it.
#pragma once

#include "simulator/machine.hpp"
#include "simulator/toml_section.hpp"

#include <functional>
#include <string>

namespace bench::simulator {

// A node of the catalogue or a node file; `where` says which file and line asked.
using NodeLoader = std::function<Machine(const std::string& name, const std::string& where)>;

bool describes_groups(const toml::table& table);

// Groups of one kind of node become one: their GPUs stand together, where the first of them
// stood. Nodes that are all of one kind make a machine without groups. Throws UsageError naming
// file and line.
Machine parse_groups(TomlSection& section, const NodeLoader& load_node);

}  // namespace bench::simulator
