// Whether a call's arguments fit a function's parameters. A call that does not fit raises a
// TypeError, and runs nothing of the function.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// False only where Python surely refuses: a keyword that no parameter takes, more positional
// arguments than there are parameters, or a parameter without a default that is given nothing.
// Decorators may change what a function takes.
bool can_bind(const CallRef& call, const FunctionRef& function);

}  // namespace bench::diagnose
