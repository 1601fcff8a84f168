// The experiments, one function a rule. Each lives in the file that is named after its rule.
#pragma once

#include "training/pitfalls/lab.hpp"

namespace bench::training {

void batch_not_divisible_by_gpus(Lab& lab);
void missing_set_epoch(Lab& lab);
void uneven_batches_per_rank(Lab& lab);
void unused_parameters(Lab& lab);

}  // namespace bench::training
