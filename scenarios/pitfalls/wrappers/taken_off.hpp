// Wrappers that are made and taken off again at once, and models that a function takes out first.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// net = DataParallel(net) and then net = net.module, or DataParallel(net).module: nothing ever runs
// through the wrapper.
bool is_taken_off_at_once(const Program& program, const diagnose::Wrap& wrap);

// if hasattr(model, "module"): model = model.module.to(device), above model(x) in one function: the
// wrapper that the function is given never runs in it.
bool is_taken_off_above(const Program& program, const CallRef& forward);

// try: evaluate(model.module) except: evaluate(model): the second runs where nothing is wrapped.
bool is_after_failed_unwrapping(const CallRef& site);

}  // namespace bench::pitfalls::facts
