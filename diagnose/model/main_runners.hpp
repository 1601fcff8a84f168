// Calls that run a function on the main process alone: run_on_main(prepare, folder) of SpeechBrain.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// Wherever the program hands the function on, it is such a call that is given it.
bool is_run_by_main_alone(const Program& program, FunctionRef function);

}  // namespace bench::diagnose
