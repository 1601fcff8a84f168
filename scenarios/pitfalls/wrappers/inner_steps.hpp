// Whole steps of training that the model inside a DDP wrapper makes by itself.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// ddp.module.step(batch), where step(), or a method that it calls on the same object, runs the
// backward pass: DDP's own forward is never called for it.
std::vector<CallRef> steps_of_inner(const Program& program);

}  // namespace bench::pitfalls
