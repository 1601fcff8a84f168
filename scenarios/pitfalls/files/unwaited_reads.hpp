// Files that one rank writes and every rank reads below, with nothing between that makes the others
// wait.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// load_from_disk(path) below `if rank == 0: data.save_to_disk(path)` in one function.
std::vector<CallRef> unwaited_reads(const Program& program);

}  // namespace bench::pitfalls
