// Actions on whole programs, without the rules' findings: `bench diagnose --to-ddp` and
// `--explain-trainer`.
#pragma once

#include "diagnose/command/flags.hpp"

namespace bench::diagnose {

int run_to_ddp(const Flags& flags);
int run_explain_trainer(const Flags& flags);

}  // namespace bench::diagnose
