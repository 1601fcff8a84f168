// Where the name of a layer stands beside the line that makes it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Some code may use the layer self.NAME of the class, which `definition` makes: NAME is asked of an
// object other than the `self` of an unrelated class, or stands in a string. Comments, docstrings
// and variables of that name are no use.
bool is_mentioned_again(const Program& program, diagnose::ClassRef cls, Ref definition);

}  // namespace bench::pitfalls
