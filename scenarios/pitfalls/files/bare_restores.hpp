// Checkpoints that hold the state of a wrapper and go back into the model that is not wrapped yet.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// {"model": ddp.state_dict(), ...}, of whose file the program restores "model" into the bare model
// above the wrapper, and nowhere into the wrapper.
bool goes_back_bare(const Program& program, const CallRef& state);

}  // namespace bench::pitfalls
