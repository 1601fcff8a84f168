// Lists that one rank alone fills, and decisions that are made of them.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// A test of the rank within the round keeps the node for the main rank.
bool is_under_main_rank(const Program& program, Ref node, Ref round);

// len(scores) > 5 and scores[-1] < max(scores), after scores = [m["f1"] for m in kept], where the
// main rank alone appends to `kept` in the round: the lists of the other ranks stay empty.
bool is_made_of_own_list(const Program& program, Ref condition, Ref round);

}  // namespace bench::pitfalls
