// Files that each process makes where it finds none, and reads where it finds one.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// np.save(path, table) of a function that asks whether there is a file at the very path, and reads
// it if so. The function may serve one process alone, or one file a process: that is not asked.
std::vector<CallRef> written_caches(const Program& program);

}  // namespace bench::pitfalls
