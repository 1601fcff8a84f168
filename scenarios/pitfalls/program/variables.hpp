// Variables that rules follow by their name: those of a function or of the file, and the attributes
// that an object gives itself (self.model).
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// model, self.model; not args.model, whose object may have other names.
bool is_variable(Ref at);

// The node stands where the variable is the same one: in its function, or in its class.
bool shares_variable(const Program& program, Ref variable, Ref node);

// What gives the variable a value, in source order: any line of the file for a name, those of the
// class for an attribute.
std::vector<const diagnose::Def*> values_of(const Program& program, Ref variable);

// A line between the two gives the variable another value, or for an attribute one of another
// method, which may run in between.
bool may_change_between(const Program& program, Ref variable, Ref from, Ref use);

}  // namespace bench::pitfalls
