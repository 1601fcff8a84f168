// Whether the other ranks answer a collective that stands under a test of the rank.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// There is a matching collective in the other branch, or the barrier pair of "rank 0 first".
bool is_matched(const Program& program, const CallRef& call);

// Calls, under a test of the rank, of the helper that the collective stands in or of one that
// always calls it, beside other calls of which none answers them.
std::vector<CallRef> lonely_calls(const Program& program, const CallRef& collective);

}  // namespace bench::pitfalls
