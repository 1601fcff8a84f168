// A loss that stands in for the one that an error has taken: torch.zeros(1, requires_grad=True).
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Reports assignments in a handler of errors, in a training loop, of a loss that no parameter has a
// part in, where backward() is called on it: this rank reduces nothing, and those that met no error
// wait. Not where the handler leaves the round, raises, or talks with the other ranks.
void check_stand_in_losses(const Program& program, Report& report);

}  // namespace bench::pitfalls
