// Questions for the shapes of a rank's own batch. How many samples it has is alike on all ranks;
// how long or how large they are, and whether there are any, their contents decide.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// image.shape[2:] != label.shape[2:], tokens.size(1) > limit, len(boxes) == 0, and `batch is None`
// above a continue: what the round's loader gives is asked.
bool asks_for_shape(const Program& program, Ref condition, Ref round);

}  // namespace bench::pitfalls
