// Gradients of a DDP model that torch.autograd.grad gives, and a program puts into .grad itself.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Reports them where nothing reduces them: only what is accumulated into .grad runs DDP's hooks.
// Not of gradients that are looked at, penalised or weighed, and of inputs that are no parameters.
void check_stored_gradients(const Program& program, Report& report);

}  // namespace bench::pitfalls
