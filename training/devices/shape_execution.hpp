// Shape execution of one call: outputs' sizes without values.
#pragma once

#include "training/devices/boxed_call.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace bench::training {

// By shape rule, else by Meta kernel, else by running the CPU's kernel once on zeros of the same
// sizes where they are small enough; otherwise an error that names the operator and what to do.
void run_shape(const c10::OperatorHandle& op, BoxedCall& call, torch::jit::Stack* stack);

// The call's outputs and mutated arguments hold no computed values: floating-point memory becomes
// NaN, so that a value read by mistake is recognised.
void mark_values_undefined(BoxedCall& call);

}  // namespace bench::training
