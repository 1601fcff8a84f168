// In which order two nodes run, and whether one runs wherever the other does.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// `first` runs before `second`, and never after it.
bool only_runs_before(const Program& program, Ref first, Ref second);

// Every condition around `node` stands around `other` too, with the same outcome.
bool runs_wherever(const Program& program, Ref node, Ref other);

}  // namespace bench::pitfalls
