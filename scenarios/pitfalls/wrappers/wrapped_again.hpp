// What becomes of a wrapper after the model inside has changed: another one is made, or none is
// used.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// student = DDP(student.module.model), below the change in the same function: the second wrapper
// sees what has changed.
bool is_wrapped_again(const Program& program, Ref object, Ref change, const diagnose::Wrap& first);

// The model is wrapped anew below, in the same function: that wrapper sees what has changed.
bool is_wrapped_anew_below(const Program& program, const diagnose::Wrap& wrap, Ref change);

// The function wraps a model once more below, by whatever name: `bare = model.module` and
// DDP(bare).
bool is_followed_by_wrap(const Program& program, const diagnose::Wrap& first, Ref change);

// model = model.module above: the wrapper is left behind.
bool is_taken_out_above(const Program& program, Ref model, const CallRef& change);

}  // namespace bench::pitfalls
