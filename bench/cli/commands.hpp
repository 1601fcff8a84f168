// The functions behind the subcommands that belong to this room; other rooms declare their own.
#pragma once

#include "bench/cli/subcommands.hpp"

namespace bench::cli {

int run_command(const Arguments& typed);  // bench --scenario ...
int list_command(const Arguments& typed);
int diagnose_command(const Arguments& typed);
int doctor_command(const Arguments& typed);
int report_command(const Arguments& typed);
int trace_command(const Arguments& typed);
int predict_command(const Arguments& typed);
int calibrate_command(const Arguments& typed);
int validate_command(const Arguments& typed);

}  // namespace bench::cli
