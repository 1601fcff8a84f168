// Evaluations over one rank's part of the data, where no DistributedSampler of PyTorch's own makes
// that part.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// val_loader.sampler.set_epoch(epoch): only a DistributedSampler has that, whoever made the loader.
bool shows_sampler(const Program& program, Ref loop);

// val_loader = make_loader(data, shuffle=False, ddp=True) of a file that is not there: the flag
// asks for the sampler.
bool is_asked_to_shard(const Program& program, Ref loop);

// The loop goes over a loader for evaluation of data that is dealt out by hand: items[rank::world],
// data.shard(num_shards=world, index=rank), a sampler of another file that is given the rank.
bool goes_over_dealt_data(const Program& program, Ref loop);

}  // namespace bench::pitfalls
