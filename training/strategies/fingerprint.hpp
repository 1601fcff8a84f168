// Digests of parameters: equal for two runs that trained alike, small enough to send in a report.
#pragma once

#include "bench/core/job.hpp"

#include <torch/torch.h>

#include <cstdint>
#include <string>

namespace bench::training {

// Digest of `now`, the parameter with this index in definition order, which started as `start`.
// Projections are on four vectors of signs drawn from the index alone. Sums are in double.
ParameterDigest digest_parameter(const std::string& name, std::uint64_t index,
                                 const at::Tensor& start, const at::Tensor& now);

}  // namespace bench::training
