// Synthetic batches: normal inputs and random targets, drawn per sample from (seed, step, sample).
// A sample does not depend on how many ranks share its batch, and a rank draws only its own.
#pragma once

#include "training/data/batch_shape.hpp"
#include "training/data/batch_source.hpp"

#include <memory>

namespace bench::training {

std::unique_ptr<BatchSource> make_synthetic_source(const BatchShape& shape, BatchOptions options);

// Host tensors of the samples [slice.begin, slice.begin + slice.count) of micro-batch `index`;
// without `values` zeros that take address space only.
Batch draw_synthetic(const BatchShape& shape, std::uint64_t seed, std::int64_t index, Slice slice,
                     bool values);

}  // namespace bench::training
