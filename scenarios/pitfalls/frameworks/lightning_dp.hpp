// The steps of Lightning modules. Under the strategy "dp" they run in DataParallel's replicas, in
// one process.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// training_step() and its kin of the class, and what they call on self.
std::vector<diagnose::FunctionRef> steps_of_module(const Program& program, diagnose::ClassRef cls);

// training_step() and its kin of the program's Lightning modules, and what they call on self; empty
// where some Trainer may have another strategy than "dp".
std::vector<diagnose::FunctionRef> steps_of_replicas(const Program& program);

}  // namespace bench::pitfalls
