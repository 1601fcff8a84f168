// Modules that a DataParallel script wraps although they have no parameters: losses. DDP refuses
// them.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// All that the wrapper may hold is a loss of torch, a module of the program without a state, or a
// loss class of the program that makes no layers.
bool wraps_no_parameters(const Program& program, const Wrap& wrap);

}  // namespace bench::diagnose
