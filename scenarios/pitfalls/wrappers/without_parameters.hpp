// Modules that have buffers at most: Accelerate puts no DDP around what has nothing to train.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// class Spectrogram(nn.Module), whose code is in sight and makes no layer and no parameter, nor
// calls an object that it is given. False where something of it is out of sight.
bool has_no_parameters(const Program& program, diagnose::ClassRef cls);

}  // namespace bench::pitfalls
