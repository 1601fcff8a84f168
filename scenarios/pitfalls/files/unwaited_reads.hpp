// Files that one rank writes and every rank reads below, with nothing between that makes the others
// wait.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

struct UnwaitedRead {
  CallRef place;  // in the function that writes above
  CallRef read;   // that call, or the one in the helper that it calls
};

// load_from_disk(path) below `if rank == 0: data.save_to_disk(path)` in one function, each of which
// may stand in a helper that the function calls.
std::vector<UnwaitedRead> unwaited_reads(const Program& program);

}  // namespace bench::pitfalls
