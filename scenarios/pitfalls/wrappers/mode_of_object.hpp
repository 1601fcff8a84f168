// Modes that an object is switched into by one of its methods: self.loads = True when it is made,
// self.loads = False in train().
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The wrapper is made in a mode that an object is not made in, and that only methods switch on
// which never come to the use.
bool is_wrapped_in_another_mode(const Program& program, const diagnose::Wrap& wrap, Ref use);

// The condition says what a run, or a step of it, is for: train, mode == "test", phase != "fit".
// The methods of an object, and the branches of a function, belong to one of these each.
bool asks_for_run(Ref condition);

// if args["arch"] == "a": self.model = DataParallel(A()) elif ...: self.model = B(): in runs of
// that mode, which says nothing of devices, the attribute is the wrapper wherever it is used.
bool is_wrapped_in_one_mode(const Program& program, Ref use, Ref object);

}  // namespace bench::pitfalls
