// What the length of a learning rate schedule is computed from.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The number of processes takes part in what the scheduler is given, or may do so out of sight:
// its steps are then those of all processes. In the learning rate it says nothing about them.
bool reckons_with_processes(const Program& program, const CallRef& scheduler);

}  // namespace bench::pitfalls
