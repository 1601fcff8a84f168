// bench --scenario ...: flags and scenario become a plan, the harness runs it.
#include "bench/cli/commands.hpp"
#include "bench/core/error.hpp"

namespace bench::cli {

int run_command(const Arguments& typed) { throw UsageError("unknown flag '" + typed[0] + "'"); }

}  // namespace bench::cli
