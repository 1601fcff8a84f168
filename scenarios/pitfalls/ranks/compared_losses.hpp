// Conditions about the loss of the batch that this rank was given.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// loss > 100, loss != loss and bool(loss == 0), where the loss comes from the wrapped model.
bool compares_loss(const Program& program, Ref condition);

// total / (i + 1) < 0.01, where the round adds its loss to the total.
bool compares_sum_of_losses(const Program& program, Ref condition, Ref round);

}  // namespace bench::pitfalls
