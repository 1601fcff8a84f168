#include "bench/predict/recorded_batch.hpp"

#include "bench/core/case_json.hpp"

namespace bench {
namespace {

// Micro-batches of all devices; the recording cuts the batch into as many parts.
std::int64_t parts_of(const Case& recorded) {
  return std::int64_t{recorded.world_size()} * recorded.accumulation;
}

}  // namespace

std::optional<std::int64_t> samples_of(const Case& recorded) {
  if (recorded.batch % parts_of(recorded) != 0) return std::nullopt;
  return recorded.batch / parts_of(recorded);
}

Case with_samples(const Case& recorded, std::int64_t samples) {
  Case other = recorded;
  other.batch = samples * parts_of(recorded);
  return other;
}

std::string series_key(const Case& recorded) { return case_to_json(with_samples(recorded, 1)); }

std::vector<Case> series_cases(const Case& recorded) {
  std::vector<Case> cases;
  for (const std::int64_t samples : simulator::BatchSeries::kSamples) {
    cases.push_back(with_samples(recorded, samples));
  }
  return cases;
}

}  // namespace bench
