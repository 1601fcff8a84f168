// Methods that no object runs, because its class has one of its own by the same name; functions
// that a later one of the same name replaces.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// Nothing makes an object of the owner itself, all classes derived from it that objects are made of
// have another method of the name, and none of them calls this one by super().
bool is_overridden_everywhere(const Program& program, diagnose::FunctionRef method,
                              diagnose::ClassRef owner);

// A second `def` of the name in the same block, below: what the name means when it is called.
bool is_replaced_below(diagnose::FunctionRef function);

// In the body of a class of another file that the program makes no object of: what its tables hold
// is run by nobody.
bool is_in_unmade_class(const Program& program, Ref place);

// self.process() in a base runs the method of a derived class in objects of that class alone, and
// the program makes none: a library has many of its kind.
bool runs_another_method(const Program& program, diagnose::FunctionRef function,
                         const CallRef& site);

}  // namespace bench::pitfalls::facts
