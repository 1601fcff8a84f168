// Ranks that a script looks after itself. What every rank downloads, saves or loads is the script's
// own matter only there: a framework that starts the ranks does these things for it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The program joins a process group or runs under Horovod, and no framework stands above them.
bool has_ranks_of_its_own(const Program& program);

}  // namespace bench::pitfalls
