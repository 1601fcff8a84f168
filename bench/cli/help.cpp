#include "bench/cli/help.hpp"

#include <algorithm>

#include "bench/cli/subcommands.hpp"

namespace bench::cli {

std::string version_text() { return std::string("bench ") + BENCH_VERSION + "\n"; }

std::string overview_text() {
  std::string text =
      "bench: what DataParallel and DistributedDataParallel cost, measured or simulated\n\n"
      "usage:\n"
      "  bench --scenario NAME|FILE.toml [flags]\n";
  for (const auto& row : subcommands()) {
    if (row.summary.empty()) continue;
    text += "  bench " + std::string(row.name) + " " + std::string(row.usage) + "\n";
  }
  text += "\ncommands:\n";
  for (const auto& row : subcommands()) {
    if (row.summary.empty()) continue;
    std::string name = "  " + std::string(row.name);
    name.resize(std::max<std::size_t>(name.size() + 1, 14), ' ');
    text += name + std::string(row.summary) + "\n";
  }
  return text;
}

}  // namespace bench::cli
