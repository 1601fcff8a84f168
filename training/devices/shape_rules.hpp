// Output shapes of operators that have no Meta kernel in C++ (Python registers its own), for shape
// execution. Each rule is checked against a numeric run by a test.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace bench::training {

class BoxedCall;

// Allocates the outputs of the functional form on the call's device. In-place and out= forms need
// no rule: they return what they were given.
using ShapeRule = std::vector<c10::IValue> (*)(const BoxedCall& call);

// By name without overload; null where there is no rule.
ShapeRule find_shape_rule(const std::string& name);

}  // namespace bench::training
