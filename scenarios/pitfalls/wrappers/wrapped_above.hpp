// Names that hold a wrapper in the runs that make one, below the line that may make it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <functional>

namespace bench::pitfalls {

// Below `if distributed: model = DDP(model)` in one function, or below the call of a helper that
// may wrap, under no test of that kind and with no new value between: in the runs that wrap, the
// object is the wrapper.
bool is_wrapped_above(const Program& program, Ref use, Ref object);

// net = self.model, and below it `if use_average: net = self.average`: in the runs without an
// average the name stands for the wrapper. `holds` says whether self.model does there.
bool is_wrapped_in_one_branch(const Program& program, Ref object,
                              const std::function<bool(Ref value)>& holds);

}  // namespace bench::pitfalls
