// Writers of logs that the first rank keeps, so that who has one is the first rank.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// if log_writer is not None: around the node, in a function that is handed a writer of logs or
// none.
bool is_left_to_the_writer(const Program& program, Ref node);

}  // namespace bench::pitfalls
