// What batch normalisation makes of one sample, the same on every GPU, among samples that differ.
#pragma once

#include "training/models/network.hpp"

#include <cstdint>

namespace bench::training {

// `count` rows of 4 values: the first is the probe, the same everywhere; the others depend on
// `place` (a rank, or a replica).
at::Tensor probe_batch(std::int64_t count, int place);

// Normalises every sample by itself, so that it makes no difference who else is in the batch.
Network::Build sample_norm();

}  // namespace bench::training
