// State of training that one rank alone changes besides the weights: part of DDP027.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Part of DDP027: the state of an optimizer that one rank alone restores, and a learning rate that
// one rank alone writes into `param_groups`. DDP reduces gradients; it sends neither to the others.
void check_optimizer_of_one_rank(const Program& program, Report& report);

}  // namespace bench::pitfalls
