// Help texts, made from the tables of subcommands and flags so that they cannot fall behind.
#pragma once

#include "bench/cli/flag_parser.hpp"

#include <span>
#include <string>

namespace bench::cli {

std::string overview_text();                             // bench --help
std::string subcommand_text(const Subcommand& command);  // bench NAME --help
std::string version_text();                              // bench --version
std::string flags_text(std::span<const Flag> flags);     // grouped, one flag a line

}  // namespace bench::cli
