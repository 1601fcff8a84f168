// Files that all ranks use, and each of them removes.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// os.remove("features.pt") on every rank: the second one finds nothing to remove.
void check_shared_removals(const Program& program, Report& report);

}  // namespace bench::pitfalls
