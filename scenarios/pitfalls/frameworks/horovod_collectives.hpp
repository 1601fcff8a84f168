// Calls of Horovod in which all ranks meet.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// hvd.allreduce(x), hvd.broadcast_parameters(...), over all ranks: no process_set is given.
std::vector<CallRef> horovod_collectives(const Program& program);

}  // namespace bench::pitfalls
