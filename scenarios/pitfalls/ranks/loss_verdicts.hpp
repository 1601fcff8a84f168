// Losses that are no numbers, which each rank finds out by itself and keeps in a flag, or asks a
// function about.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// is_valid, error = check_loss(loss): a verdict of a function about the loss that it is given.
bool is_verdict_on_loss(const Program& program, Ref condition);

// if not skip: loss.backward(), after if torch.isnan(loss): skip = True in the same round.
bool is_flag_of_loss(const Program& program, Ref condition, Ref round);

}  // namespace bench::pitfalls
