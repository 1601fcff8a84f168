// Recordings at a few batches that give the recording at any other (simulator/batch_edit.hpp), and
// the cases that such a series serves.
#pragma once

#include "bench/core/case.hpp"
#include "simulator/batch_edit.hpp"

#include <optional>
#include <string>
#include <vector>

namespace bench {

// Samples of a micro-batch on one device; nullopt where the parts are unequal.
std::optional<std::int64_t> samples_of(const Case& recorded);
// The same case with another number of them.
Case with_samples(const Case& recorded, std::int64_t samples);
// The cases that differ from this one in their batch alone have the same.
std::string series_key(const Case& recorded);
// What is recorded for them, in the order of BatchSeries::kSamples.
std::vector<Case> series_cases(const Case& recorded);

}  // namespace bench
