// isinstance(model, nn.DataParallel) asked of a DistributedDataParallel: it is none, and what the
// answer was for, the model inside, is left out.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The node stands where the test of `object` fails, and fails wherever the object is wrapped.
bool is_asked_for_other_kind(const Program& program, Ref node, Ref object);

}  // namespace bench::pitfalls
