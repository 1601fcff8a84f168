// Reductions of what a training step makes: no evaluation waits for those.
#pragma once

#include "scenarios/pitfalls/metrics/reductions.hpp"

namespace bench::pitfalls {

// dist.all_reduce(loss) beside loss.backward(), also of a copy of it and by a helper that only
// training steps call. `loop` is that of the evaluation.
bool is_of_training(const Program& program, const Reduction& reduction, Ref loop);

}  // namespace bench::pitfalls
