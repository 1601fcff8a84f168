// if isinstance(model, DDP), if type(model) in KINDS: branches that are not run with the wrapper.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The attribute of an object is used where a test of the object's type has ruled the wrapper out.
bool is_tested_for_wrapper(const Program& program, Ref use);

}  // namespace bench::pitfalls
