// What the contents of a rank's own batch decide: how many samples a round of training selects, and
// whether a helper finds anything in them. The sizes that a loader gives are alike on all ranks.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// len(hard) == 0 after hard = find_hard(model(batch)), not valid.any() after valid = labels >= 0:
// the condition asks whether anything of the round's batch is left.
bool asks_what_is_left(const Program& program, Ref condition, Ref round);

// The names of what the loader gives to a round, and of whatever the round makes of it.
VariableNames names_of_batch(const Program& program, Ref round);

}  // namespace bench::pitfalls
