// Tests of whether there are GPUs.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The else of `if torch.cuda.is_available()`, also by a name for it, and what stands under
// device.type == "cpu": no run on GPUs comes by.
bool only_without_gpus(const Program& program, Ref node);

}  // namespace bench::pitfalls
