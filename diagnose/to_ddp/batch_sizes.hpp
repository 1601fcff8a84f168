// The batch sizes of training loaders in the rewritten program, and where else the program takes
// one of them for the number of samples at hand.
#pragma once

#include "diagnose/to_ddp/supplies.hpp"

#include <vector>

namespace bench::diagnose {

struct BatchSize {
  CallRef loader;
  Ref total;  // what a step of all ranks takes, as the loader is given it; empty where it is not
  bool is_divided = false;  // the loader takes the rank's share of it
};

// Of the loaders that training draws from.
std::vector<BatchSize> batch_sizes(const Left& left);

// randn(batch_size, n), x.view(batch_size, -1), x.size(0) != batch_size, x[:batch_size],
// correct / batch_size, for i in range(batch_size) over x[i]: in code that trains.
std::vector<Ref> other_uses(const Left& left, const BatchSize& batch);

// batch_size * num_gpus
std::vector<Ref> products_with_gpus(const Left& left, const BatchSize& batch);

// sub_batch = batch_size // steps
std::vector<Ref> parts_of_batch(const Left& left, const BatchSize& batch);

}  // namespace bench::diagnose
