// Loops that evaluate a model, by their names or by what they do with it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// with torch.no_grad(): out = model(x), inside the loop.
bool passes_without_grad(const Program& program, Ref loop);

// In a function that is called evaluate() or validate(), and evaluates.
bool stands_in_evaluation(const Program& program, Ref loop);

// Over a loader for evaluation, in a function that is called so, or below model.eval() without
// gradients and without a backward pass.
bool is_loop_of_evaluation(const Program& program, Ref loop);

}  // namespace bench::pitfalls
