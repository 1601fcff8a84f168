// Checkpoints that a helper of a file that is not at hand writes.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// save_checkpoint({"model": model.state_dict()}, path): it is given the states themselves and
// nothing that could tell it the rank. By its name it saves on whoever calls it.
std::vector<CallRef> helpers_that_save(const Program& program);

}  // namespace bench::pitfalls
