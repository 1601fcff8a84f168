// `bench diagnose --add-ignores`: silences all findings that are shown, for a project that begins
// with the program and wants to see new ones only.
#pragma once

#include "diagnose/command/flags.hpp"
#include "diagnose/command/result_output.hpp"

namespace bench::diagnose {

int run_add_ignores(const Flags& flags, ResultOutput& output);

}  // namespace bench::diagnose
