// Attributes that a program tries: it expects that they may not be there.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls {

// try: model.module.encode(x) except AttributeError: model.encode(x): a try that catches what a
// missing attribute raises, speaks of it or of the wrapped model in its other parts, or holds
// little else. One around a whole training run, which tidies up or reports, is none.
bool is_attempt(Ref use, std::string_view attribute);

}  // namespace bench::pitfalls
