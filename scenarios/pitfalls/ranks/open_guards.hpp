// Tests of the rank that let the other ranks in by another condition.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// `if sharded or rank == 0:` around the node or a call that leads to it, and on the way from there
// to the node something else is asked of `sharded`: where that holds all ranks come by, and the
// node may be for these runs alone.
bool lets_all_in(const Program& program, Ref node);

// if running_alone > 0: return above the node, a number of the file that is counted up where one
// rank works alone: such ranks leave before they come to the node.
bool is_let_out_by_counter(const Program& program, Ref node);

}  // namespace bench::pitfalls
