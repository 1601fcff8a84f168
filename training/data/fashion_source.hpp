// Fashion-MNIST as a BatchSource: read once, shuffled every epoch by DistributedSampler, normalised
// and brought into the model's shape by loader threads, copied to the device in next().
#pragma once

#include "training/data/batch_shape.hpp"
#include "training/data/batch_source.hpp"

#include <memory>

namespace bench::training {

// A regression model learns the label as a one-hot vector in the first ten outputs.
std::unique_ptr<BatchSource> make_fashion_source(const BatchShape& shape, BatchOptions options);

}  // namespace bench::training
