// Modes that an object is switched into by one of its methods: self.loads = True when it is made,
// self.loads = False in train().
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The wrapper is made in a mode that an object is not made in, and that only methods switch on
// which never come to the use.
bool is_wrapped_in_another_mode(const Program& program, const diagnose::Wrap& wrap, Ref use);

}  // namespace bench::pitfalls
