// Several backward passes of one model for the same batch.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// for width in widths: criterion(model(batch, width)).backward(), in a loop over the batches of a
// loader: the model is the same one each time.
bool repeats_batch(const Program& program, Ref inner);

}  // namespace bench::pitfalls
