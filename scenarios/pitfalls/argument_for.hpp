// What a call passes to a parameter of the function that it calls.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls::facts {

// By place or by keyword, with the object in front of a method left out; empty where the call
// leaves the parameter to its default, and for names that are no parameter.
Ref argument_for(const CallRef& site, diagnose::FunctionRef function, std::string_view parameter);

}  // namespace bench::pitfalls::facts
