// Programs whose processes someone starts by hand, on one machine after another.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// python train.py --rank 1 --master_addr host, typed on each machine: nothing here knows more than
// one process of a machine, and GPU 0 may be all that it has.
bool is_typed_on_each_machine(const Program& program);

}  // namespace bench::pitfalls
