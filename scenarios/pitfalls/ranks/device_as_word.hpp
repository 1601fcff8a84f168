// A torch.device that is compared with a word: `device != "cpu"` holds whatever the device is.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The ids stand in a branch that a test such as `device != "cpu"` is meant to keep from the CPU,
// the device is a torch.device wherever it comes from, and it is the CPU in some run of this
// program, which has gloo for it. The test; empty where that is not all in sight.
Ref idle_test_for_cpu(const Program& program, const diagnose::Wrap& wrap, Ref ids);

}  // namespace bench::pitfalls
