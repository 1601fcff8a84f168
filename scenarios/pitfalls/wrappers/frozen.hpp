// Models that are frozen as a whole: nothing trains them, so they have no gradients to reduce.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// for p in teacher.parameters(): p.requires_grad = False, or teacher.requires_grad_(False), under
// the name that `object` has, and no line that gives the gradients back.
bool is_frozen(const Program& program, Ref object);

// The same where each of these lines stands under a condition that `object` does not stand under:
// if mode == "finetune": a run of another mode trains the model.
bool is_frozen_in_some_runs(const Program& program, Ref object);

// The line above `node`, in its function, that last switched the gradients of `object` switched
// them off: freeze(critic), critic.requires_grad_(False).
bool is_frozen_at(const Program& program, Ref object, Ref node);

// The optimizers are given the parameters of other models by name, and what those are made of has
// nothing of `object` in it: its gradients change nothing.
bool is_left_to_no_optimizer(const Program& program, Ref object);

}  // namespace bench::pitfalls
