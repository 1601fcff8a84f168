// Which batches a strategy can cut: DDP gives every rank the same number of samples, DataParallel
// cuts chunks as torch.chunk does and may leave the last devices with nothing.
#pragma once

#include "bench/core/case.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace bench {

// Why this batch cannot be trained so; nullopt when it can.
std::optional<std::string> batch_problem(const Case& work);

// Samples per step on each GPU where all have the same; nullopt where the batch does not divide.
std::optional<std::int64_t> batch_per_gpu(const Case& work);

}  // namespace bench
