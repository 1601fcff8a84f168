// Models that are trained beside a wrapped one, and that nothing wraps: the head or the loss with
// parameters of its own, or the discriminator.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Tells of models that an optimizer is given beside the one that DDP wraps, at the first forward
// pass behind a loss. Not of those that may reduce by themselves, that are a part of what is
// wrapped, or that something else may keep equal.
void check_bare_partners(const Program& program, Report& report);

}  // namespace bench::pitfalls
