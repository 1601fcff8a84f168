// Helpers that switch requires_grad of what they are given, and the calls of them that matter after
// a model was wrapped.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <utility>
#include <vector>

namespace bench::pitfalls {

// def requires_grad(model, flag): what a helper sets is switched off and on again by its callers.
bool is_switch(const Program& program, const diagnose::Def& def, const diagnose::Module& module);

// set_parameter_requires_grad(model.module, freezing=False) of a file that is not at hand, with one
// literal that every call of it has: no phases of training.
std::vector<CallRef> unseen_switches(const Program& program);

// freeze(ddp.module.encoder) and requires_grad(ddp.module.encoder, False), where the helper
// switches what it is given: the calls that hand it a part of what stands inside a wrapper. A
// helper that is told True here and False there makes phases of training.
std::vector<CallRef> seen_switches(const Program& program);

// set_trained(False) at the first epoch and set_trained(True) at a later one, where the helper
// switches what it is given, or what the script holds: the calls, and what is switched.
std::vector<std::pair<CallRef, Ref>> switches_by_epoch(const Program& program);

// if epoch == 10: model.module.unfreeze(), of a class that is not here: the call, and what it is
// called on.
std::vector<std::pair<CallRef, Ref>> unseen_stages(const Program& program);

}  // namespace bench::pitfalls
