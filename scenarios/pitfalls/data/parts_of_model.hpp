// Lists that ranks share out and that hold no samples: the weights of a layer, the layers of a
// model.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// weights[rank::world_size], chunks[tp_rank::tp_size]: each rank keeps its own parts of a model. No
// loop over batches is shorter for it.
bool shares_out_model(const Program& program, Ref slice);

}  // namespace bench::pitfalls
