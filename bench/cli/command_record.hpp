// The command that started a run, kept beside its results (command.json): `bench --resume DIR`
// repeats it, and a reader can see what was asked for.
#pragma once

#include "bench/cli/subcommands.hpp"

#include <filesystem>

namespace bench::cli {

void write_command_record(const std::filesystem::path& directory, const Arguments& arguments);

struct CommandRecord {
  std::filesystem::path directory;  // where the command was given; its relative paths start here
  Arguments arguments;              // as typed
};

// The command of the run in `directory`. Throws UsageError when there is no readable record.
CommandRecord read_command_record(const std::filesystem::path& directory);

}  // namespace bench::cli
