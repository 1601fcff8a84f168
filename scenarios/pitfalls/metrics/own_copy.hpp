// A figure that is reduced into another name, and decides as it was: of one rank's part.
#pragma once

#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <vector>

namespace bench::pitfalls {

// Reports where a best figure is kept or a plateau schedule is stepped by the rank's own figure,
// and the same function holds the reduced one under another name.
void check_own_copies(const Program& program, const std::vector<Reduction>& reductions,
                      Report& report);

// The metric that a tensor of its own takes the value of: loss for torch.tensor(loss), and for
// loss.clone(). Empty for what is no such copy.
std::string figure_copied(Ref value);

}  // namespace bench::pitfalls
