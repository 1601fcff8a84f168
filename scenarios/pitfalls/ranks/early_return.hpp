// Ranks that leave where the others go on: under an option, `if rank == 0: evaluate(); return` with
// nothing behind it that makes the other ranks leave as well.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Such a return above the collective, in its function; empty where there is none, or where all
// ranks that come to the collective have passed by it.
Ref return_of_some_ranks(const Program& program, Ref collective);

// The same for exit() of the first rank, anywhere above the collective.
Ref exit_of_some_ranks(const Program& program, Ref collective);

}  // namespace bench::pitfalls
