// Whether a call may bring gradients into a loss. It is said of calls that are known: functions of
// torch without a model, methods of tensors, losses, and functions of the program, whose own calls
// are looked at. Whatever else is called may be a model.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// The node runs under no_grad, itself or by a call between it and the function of the loss.
bool is_without_gradients(const Program& program, Ref node, Ref loss);

// Some call behind the loss, outside of no_grad, may be a forward pass with gradients.
bool may_have_gradients(const Program& program, Ref loss);

}  // namespace bench::pitfalls::facts
