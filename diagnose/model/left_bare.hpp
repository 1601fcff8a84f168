// Whether a helper that wraps models leaves the one of a call as it is.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// net = build(name, local_rank=-1), where build() wraps under `if local_rank >= 0:`: what the call
// gives decides against the wrapper.
bool is_left_bare(const Program& program, Ref expression, const Wrap& wrap);

}  // namespace bench::diagnose
