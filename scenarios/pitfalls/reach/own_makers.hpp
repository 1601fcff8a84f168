// Classes that make their objects themselves: return cls(args.resume) in a class method.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// Those calls in methods of the class.
std::vector<CallRef> made_by_itself(const Program& program, diagnose::ClassRef cls);

// Config.from_args(args): the calls of the function, also of a class method by the name of its
// class in another file. Only that they are made counts: they bind no parameter.
std::vector<CallRef> sites_of(const Program& program, const diagnose::FunctionRef& function);

// @classmethod, @staticmethod: no object is there before it runs, and it may make the first.
bool needs_no_object(const diagnose::FunctionRef& function);

}  // namespace bench::pitfalls
