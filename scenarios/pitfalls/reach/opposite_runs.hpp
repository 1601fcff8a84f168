// Places that only those runs reach in which something else is not done.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Every way to the node passes a test that comes out otherwise where the wrapper is made, also by
// another name for the same option: `if args.several: model = DDP(model)` in one file, and
// `else: self.save(model)` of `if self.several:` in another, after self.several = args.several.
bool only_in_runs_without(const Program& program, Ref node, Ref wrapping);

}  // namespace bench::pitfalls
