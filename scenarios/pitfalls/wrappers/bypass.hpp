// Calls that go round a DDP wrapper: of the model inside, which a name holds.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The DDP wrapper that the expression ddp.module looks below; null for anything else.
const diagnose::Wrap* wrapper_of_inner(const Program& program, Ref value);

// The wrapper that raw(x) or raw.step(x) goes round after raw = model.module, also where that is
// one of two choices; null where the call does no such thing.
const diagnose::Wrap* wrapper_gone_round(const Program& program, const CallRef& call);

// model.parameters(), model.train(), model.to(device): what every module has beside its forward
// pass, of whatever name; none of it makes an output that a gradient flows back from.
bool runs_no_forward(const Program& program, const CallRef& call);

// heads(x) and heads["a"](x) below `if isinstance(heads, DDP): heads = heads.module`: whatever the
// name was given, no wrapper is left in it.
bool is_unwrapped_above(const Program& program, const CallRef& call);

// self.raw after self.raw = net beside self.model = net, of which self.model is wrapped alone: the
// very object, and never the wrapper.
bool is_other_attribute_of(const Program& program, Ref function, const diagnose::Wrap& wrap);

// if first: ddp(x) else: ddp.module.decode(x): one step of the training goes round the wrapper and
// another does not. False where a mode, a return or a question whether to train keeps the bypass
// from the backward pass; that the two do not exclude each other is known.
bool trains_in_other_steps(const Program& program, Ref bypass, Ref forward, Ref backward);

}  // namespace bench::pitfalls
