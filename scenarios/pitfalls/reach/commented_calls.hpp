// Calls that stand in comments: what the author switches on and off by hand.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// # best = train(model, loader): of the function with all of the script's training, which nothing
// else calls or hands on; it is switched off for one run, of an evaluation. The one that is called
// main() is passed over on purpose.
bool is_called_in_comment(const Program& program, diagnose::FunctionRef function);

}  // namespace bench::pitfalls::facts
