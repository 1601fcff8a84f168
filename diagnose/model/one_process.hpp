// Lines that only a run of one process comes by, as the tests around them say.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// Within its function the node is in the branch without several processes: under `if not
// distributed:`, or in the else of `if world_size > 1:`.
bool is_of_one_process(const Program& program, Ref node);

}  // namespace bench::diagnose
