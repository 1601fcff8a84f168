// `bench diagnose --fix` and `--diff`.
#pragma once

#include "diagnose/command/flags.hpp"
#include "diagnose/command/result_output.hpp"

namespace bench::diagnose {

// Applies or shows fixes until none is left; a fix may make room for the next one. The exit code.
int run_fixes(const Flags& flags, ResultOutput& output);

}  // namespace bench::diagnose
