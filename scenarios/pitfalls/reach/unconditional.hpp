// What every run of the program comes by that is not over before.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// if steps < 1: raise ValueError(...) above the node, or a word and sys.exit(): a run that goes on
// comes by.
bool ends_the_run(const diagnose::Guard& guard, Ref node);

// No condition decides whether the node runs but checks that end the run: `if not
// torch.cuda.is_available(): raise ...`. A test of the rank ends the run of some ranks only.
bool is_unconditional(const Program& program, Ref node);

}  // namespace bench::pitfalls
