#include "bench/cli/dispatch.hpp"

#include "bench/cli/commands.hpp"
#include "bench/cli/help.hpp"
#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"

#include <cstdio>

namespace bench::cli {
namespace {

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return kExitClean;
}

// "--help" anywhere among the flags asks for help; after "--" it belongs to another program.
bool asks_for_help(const Arguments& typed) {
  for (const std::string& argument : typed) {
    if (argument == "--") return false;
    if (argument == "--help" || argument == "-h") return true;
  }
  return false;
}

}  // namespace

int dispatch(const Arguments& typed) {
  if (typed.empty()) return print(overview_text());
  if (typed[0] == "--version") return print(version_text());
  if (typed[0].starts_with("-")) {
    return asks_for_help(typed) ? print(overview_text()) : run_command(typed);
  }
  if (const Subcommand* command = find_subcommand(typed[0])) {
    if (!command->helps_itself && asks_for_help(typed)) return print(subcommand_text(*command));
    return command->run({typed.begin() + 1, typed.end()});
  }
  std::vector<std::string> known;
  for (const auto& row : subcommands()) {
    if (!row.summary.empty()) known.emplace_back(row.name);
  }
  throw UsageError(unknown_name_message("command", typed[0], known));
}

}  // namespace bench::cli
