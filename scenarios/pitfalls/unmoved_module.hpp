// A module in DataParallel that nothing moves to a GPU: part of DP002.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The wrapped module is built here and stays on the CPU, while batches are moved to the GPU.
// DataParallel moves its inputs and no module: its forward raises RuntimeError ("module must have
// its parameters and buffers on device cuda:0"). Silent where anything outside of a loop is moved,
// by whatever name, since that may be the module.
bool is_never_moved(const Program& program, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls
