// Actions on whole programs, without the rules' findings: `bench diagnose --to-ddp` and
// `--explain-trainer`.
#pragma once

#include "diagnose/command/flags.hpp"
#include "diagnose/command/result_output.hpp"

namespace bench::diagnose {

int run_to_ddp(const Flags& flags, ResultOutput& output);
int run_explain_trainer(const Flags& flags, ResultOutput& output);

}  // namespace bench::diagnose
