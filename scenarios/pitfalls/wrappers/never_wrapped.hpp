// Ranks that share the data out between them and train models that nothing keeps equal.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls {

// The forward passes of models that ranks train on their shares of the data without a wrapper that
// reduces gradients. Empty where a collective, a hook or anything out of sight may reduce them.
std::vector<CallRef> unreduced_forwards(const Program& program);

// sync(model), comm.mean_(p.grad), Optimizer(SGD(...)): functions out of sight may reduce what has
// this name. Those that by their names load, save, test or measure do not.
bool may_reduce_out_of_sight(const Program& program, std::string_view model);

}  // namespace bench::pitfalls
