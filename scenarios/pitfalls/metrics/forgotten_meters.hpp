// Meters of the program's own that an evaluation forgets to reduce: top1 beside top5.all_reduce().
#pragma once

#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// Reports where the evaluation around the loop returns the figure of a meter that it does not
// reduce, beside one of the same class that it does.
void check_forgotten_meters(const Program& program, Ref loop,
                            const std::vector<Reduction>& reductions, Report& report);

}  // namespace bench::pitfalls
