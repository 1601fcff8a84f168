// What one rank writes and all ranks read, with nothing in between that they wait for.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

void find_loads_without_barrier(const Program& program, Report& report);

}  // namespace bench::pitfalls
