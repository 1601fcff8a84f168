#include "bench/cli/help.hpp"

#include "bench/cli/run_flags.hpp"
#include "bench/cli/subcommands.hpp"

#include <algorithm>

namespace bench::cli {
namespace {

constexpr std::size_t kFlagWidth = 31;
constexpr std::size_t kCommandWidth = 12;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

std::string flag_line(const Flag& flag) {
  std::string typed = "  " + std::string(flag.name);
  if (!flag.placeholder.empty()) typed += " " + std::string(flag.placeholder);
  if (typed.size() >= kFlagWidth) typed += "\n" + std::string(kFlagWidth - 1, ' ');
  return padded(typed, kFlagWidth) + std::string(flag.help) + "\n";
}

}  // namespace

std::string flags_text(std::span<const Flag> flags) {
  std::string text;
  std::string_view group;
  for (const Flag& flag : flags) {
    if (flag.help.empty()) continue;
    if (flag.group != group) text += "\n" + std::string(flag.group) + ":\n";
    group = flag.group;
    text += flag_line(flag);
  }
  return text;
}

std::string subcommand_text(const Subcommand& command) {
  return "usage: bench " + std::string(command.name) + " " + std::string(command.usage) + "\n" +
         std::string(command.summary) + "\n";
}

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
    text += "  " + padded(std::string(row.name), kCommandWidth) + std::string(row.summary) + "\n";
  }
  text += flags_text(run_flags());
  text +=
      "\nSwitches can be turned off with --no-..., as --no-broadcast-buffers, and DDP's options "
      "be\n"
      "swept, as --static-graph=false,true. Google Benchmark's flags (--benchmark_filter,\n"
      "--benchmark_repetitions, --benchmark_format, --benchmark_out, ...) are passed on to it.\n"
      "\nexit codes: 0 done and clean; 1 a wrong result, a finding or a regression; 2 bad usage "
      "or\n"
      "bad input; 3 this machine cannot do it.\n";
  return text;
}

}  // namespace bench::cli
