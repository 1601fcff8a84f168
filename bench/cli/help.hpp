// Help texts, made from the tables of subcommands and flags so that they cannot fall behind.
#pragma once

#include <string>

namespace bench::cli {

std::string overview_text();  // bench --help
std::string version_text();   // bench --version

}  // namespace bench::cli
