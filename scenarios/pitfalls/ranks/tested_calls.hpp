// The calls under a test of the rank itself that lead to a place which the ranks come to apart.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// `if rank == 0: validate(model)`, for the forward pass or the collective inside validate(), also a
// few calls further down: that is the line to change. The place itself where the test stands in its
// own function, where no caller tests the rank, or where many do.
std::vector<Ref> tested_calls(const Program& program, Ref place);

}  // namespace bench::pitfalls
