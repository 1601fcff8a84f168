// Whether a call may bring gradients into a loss. It is said of calls that are known: functions of
// torch without a model, methods of tensors, losses, and functions of the program, whose own calls
// are looked at. Whatever else is called may be a model.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// Some call behind the loss, outside of no_grad, may be a forward pass with gradients.
bool may_have_gradients(const Program& program, Ref loss);

}  // namespace bench::pitfalls::facts
