// Lines that a run with certain settings never comes by.
#pragma once

#include "scenarios/pitfalls/reach/decided.hpp"

namespace bench::pitfalls::facts {

// A condition around the node, or around every call that leads to it, does not hold with the values
// that are known.
bool is_passed_by(const Program& program, Ref node, const ValueOf& value_of);

}  // namespace bench::pitfalls::facts
