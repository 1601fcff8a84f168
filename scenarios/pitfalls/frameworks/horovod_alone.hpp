// Horovod that a script initialises and makes no use of.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The script calls hvd.init() and nothing else of Horovod, only evaluates, and what it reaches in
// other files combines nothing either: init() is there for what it imports, and the script may well
// be run as one process.
bool only_joins_horovod(const Program& program);

}  // namespace bench::pitfalls
