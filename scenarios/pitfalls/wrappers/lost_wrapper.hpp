// Calls that go round a DDP wrapper which the name called held before, or which the object called
// was made from.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// model.module for model below model = model.module and model = load(model.module, states), where
// nothing wraps the name again above the use; empty where the name holds anything else.
Ref inner_given_to(const Program& program, Ref object, Ref use);

// Below model = model.module and model = load(model.module, states), where nothing wraps the name
// again, model(x) goes round the wrapper. It may have been made out of sight, where a test for
// distribution says that there is one.
bool has_lost_wrapper(const Program& program, const CallRef& call);

// The wrapper that flow(x) goes round after flow = Flow(model.module), where Flow is a class of a
// file that is not there; null where the call does no such thing.
const diagnose::Wrap* wrapper_left_out_of(const Program& program, const CallRef& call);

// net = DDP(net) in `for net in [a, b]:`, where nothing in the loop uses the name below: each
// wrapper is dropped in the round that made it.
std::vector<CallRef> wrappers_of_loop_items(const Program& program);

// DDP(net) as a statement, net = DDP(net).module, and net = DDP(net) at the end of a function that
// is given the net, and neither uses the name below nor returns it: nobody has the wrapper.
std::vector<CallRef> wrappers_dropped(const Program& program);

}  // namespace bench::pitfalls
