// The table of subcommands: `bench NAME ...`. A new one is a function and a row in subcommands.cpp;
// the overview of `bench --help` comes from the rows, in their order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench::cli {

using Arguments = std::vector<std::string>;  // what was typed after the subcommand's name

struct Subcommand {
  std::string_view name;
  std::string_view usage;              // what follows the name
  std::string_view summary;            // one line of the overview; empty = not in the overview
  int (*run)(const Arguments& typed);  // returns the exit code, or throws bench::Error
  bool helps_itself = false;           // answers --help with more than usage and summary
};

std::span<const Subcommand> subcommands();
const Subcommand* find_subcommand(std::string_view name);  // null when unknown

}  // namespace bench::cli
