// A module in DataParallel that nothing moves to a GPU: part of DP002.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// The wrapped module is built here and stays on the CPU, while batches are moved to the GPU.
// DataParallel moves its inputs and no module: its forward raises RuntimeError ("module must have
// its parameters and buffers on device cuda:0"). Silent where anything outside of a loop is moved,
// by whatever name, since that may be the module.
bool is_never_moved(const Program& program, const diagnose::Wrap& wrap);

// Each of the moves stands below a call that has trained the module: self.model =
// DataParallel(...), self.train(), self.model.to(device).
bool is_moved_after_training(const Program& program, const diagnose::Wrap& wrap,
                             const std::vector<CallRef>& moves);

}  // namespace bench::pitfalls
