// Wrappers that are made and taken off again at once.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// net = DataParallel(net) and then net = net.module, or DataParallel(net).module: nothing ever runs
// through the wrapper.
bool is_taken_off_at_once(const Program& program, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls::facts
