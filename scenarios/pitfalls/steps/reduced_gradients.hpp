// Gradients that a program reduces itself, between backward() and step().
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// A call whose name says that it reduces or averages is given gradients, or says so of gradients:
// hvd.allreduce(p.grad), all_reduce_and_rescale(grads) with the list made of p.grad above it,
// average_gradients(model). Whose call it is does not matter: the helper may be of another file.
bool reduces_gradients(const Program& program);

}  // namespace bench::pitfalls
