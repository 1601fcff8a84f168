// Shares of data that ranks cut for themselves, where the last rank takes what the division left,
// and such where nothing is left.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// end = len(data) if rank == world_size - 1 else start + share, where start comes from the rank.
bool gives_rest_to_last(const Program& program, Ref start, Ref end);

// The slice data[start:end] of such numbers.
bool cuts_with_rest(const Program& program, Ref slice);

// order[rank:total:world_size] with total = per_rank * world_size: as many for each.
bool ends_with_a_turn(const Program& program, Ref slice);

// Dealt out in turn, each rank gets as many: batches = order.tensor_split(turns * world_size), and
// order = np.zeros(batches * batch_size) of a batch_size that is per_rank * world_size.
bool comes_in_whole_turns(const Program& program, Ref list);

}  // namespace bench::pitfalls
