// What a loop adds up in a function that it calls for each batch: total = step(total, x), whose
// function adds to its parameter and gives it back, and step(losses, x), whose function appends.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"

#include <vector>

namespace bench::pitfalls {

// Under the names of the loop, each where the loop calls the function. Assignments of these
// functions, which tell what is added, go to `in_loop`.
std::vector<Assigned> additions_by_steps(const Program& program, Ref loop,
                                         std::vector<Assigned>& in_loop);

// The variables to which the loop adds metrics, itself or by such functions.
VariableNames metrics_added_in(const Program& program, Ref loop);

}  // namespace bench::pitfalls
