// Iterators over a loader that are made anew where they have come to their end.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// except StopIteration: batches = iter(loader), or if step % len(loader) == 0: batches =
// iter(loader), and nothing beside it that might tell the sampler of a new pass.
bool starts_again(const Program& program, const CallRef& starts);

}  // namespace bench::pitfalls
