// Calls that run a function on the main process alone: run_on_main(prepare, folder) of SpeechBrain.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// The name of a function stands there as the first argument of such a call.
bool is_given_to_main_runner(const Program& program, Ref place);

}  // namespace bench::diagnose
