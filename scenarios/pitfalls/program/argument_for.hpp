// What a call passes to the function that it calls.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>
#include <vector>

namespace bench::pitfalls::facts {

// By place or by keyword, with the object in front of a method left out; empty where the call
// leaves the parameter to its default, and for names that are no parameter.
Ref argument_for(const CallRef& site, diagnose::FunctionRef function, std::string_view parameter);

// All that a call passes, by place and by keyword.
std::vector<Ref> arguments_of(const CallRef& call);

}  // namespace bench::pitfalls::facts
