// Iterable data sets that deal the items of one stream out to the ranks in turn.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// index % world_size != rank, and == rank.
bool asks_for_turn(const Program& program, Ref condition);

// Such a test, or islice(items, rank, None, world_size), in __iter__ of a data set of this program
// that a training loop reads to its end.
std::vector<Ref> turns_of_streams(const Program& program);

}  // namespace bench::pitfalls
