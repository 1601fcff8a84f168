// Ranks that share the data out between them and train models that nothing keeps equal.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The forward passes of models that ranks train on their shares of the data without a wrapper that
// reduces gradients. Empty where a collective, a hook or anything out of sight may reduce them.
std::vector<CallRef> unreduced_forwards(const Program& program);

}  // namespace bench::pitfalls
