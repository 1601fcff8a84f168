// Wrappers that no training goes through.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Nothing that trains goes through the wrapper, anywhere in the program.
bool never_trains_through(const Program& program, const diagnose::Wrap& wrap);

// loss = flow(x) or flow.loss(x) after flow = Flow(net), where net is wrapped only below: the
// object keeps the bare model, and nothing else trains.
bool keeps_bare_model(const Program& program, const CallRef& call, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls
