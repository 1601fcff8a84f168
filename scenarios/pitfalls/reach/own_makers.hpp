// Classes that make their objects themselves: return cls(args.resume) in a class method.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// Those calls in methods of the class.
std::vector<CallRef> made_by_itself(const Program& program, diagnose::ClassRef cls);

}  // namespace bench::pitfalls
