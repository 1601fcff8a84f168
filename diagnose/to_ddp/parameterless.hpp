// Modules without parameters: losses that a DataParallel script wraps, and that DDP refuses, and
// layers that wait for no gradient.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// All that the wrapper may hold is a loss of torch, a module of the program without a state, or a
// loss class of the program that makes no layers.
bool wraps_no_parameters(const Program& program, const Wrap& wrap);

// False for what is known to have nothing to train: an activation, a pooling layer, a loss.
bool may_hold_parameters(const Program& program, Ref layer);

}  // namespace bench::diagnose
