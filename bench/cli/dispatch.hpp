// Finds out which command was meant: a subcommand of the table, or the main one, `bench
// --scenario`.
#pragma once

#include "bench/cli/subcommands.hpp"

namespace bench::cli {

// Returns the exit code; throws bench::Error.
int dispatch(const Arguments& typed);

}  // namespace bench::cli
