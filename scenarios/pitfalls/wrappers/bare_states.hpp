// Checkpoints that hold model.module.state_dict() and go back into the wrapper.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// wrapper.load_state_dict(checkpoint["model"]) below the wrapper, where all that the program saves
// under that key is the inner model's state, and other entries of the same dictionary are restored
// beside it.
std::vector<CallRef> loads_of_bare_states(const Program& program);

}  // namespace bench::pitfalls
