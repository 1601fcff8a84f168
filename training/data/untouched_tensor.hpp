// Host tensors for shape execution, which never reads a sample: they take address space and no
// memory, so that a batch far beyond this machine's memory can be asked about.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace bench::training {

// A contiguous CPU tensor of zeros whose pages exist only once they are touched. Throws c10::Error
// where the tensor does not fit into the address space.
torch::Tensor untouched_zeros(const std::vector<std::int64_t>& sizes, torch::Dtype dtype);

}  // namespace bench::training
