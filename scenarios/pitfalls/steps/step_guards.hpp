// The conditions under which a training loop steps its optimizer.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// Those around the step itself, and those around update(optimizer), the only call in the loop of a
// helper that steps.
std::vector<diagnose::Guard> guards_of_step(const Program& program,
                                            const diagnose::TrainingLoop& loop,
                                            const CallRef& step);

// if is_bad: optimizer.zero_grad(); continue above the step: one of the two runs.
bool runs_instead_of(const Program& program, Ref node, Ref step);

}  // namespace bench::pitfalls
