// split_dataset_by_node and shard() of Hugging Face datasets: each rank reads the share that it is
// dealt.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// if step >= max_steps: break, or a number of steps that all ranks are given.
bool stops_at_a_step(const Program& program, Ref loop);

// The calls that deal shares out to a training loop which reads them to their end.
std::vector<CallRef> shares_read_to_end(const Program& program);

}  // namespace bench::pitfalls
