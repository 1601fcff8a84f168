// Modules without parameters and buffers: a wrapper of one has no state either.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Each class that the wrapper may hold is one of this program, derives from nn.Module alone, and
// keeps nothing that could have a state: class Identity with a forward and no layers.
bool has_no_state(const Program& program, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls
