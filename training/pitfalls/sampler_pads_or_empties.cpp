// Validation over a DistributedSampler: it repeats samples until every rank has equally many, and
// they count twice in the metric; with drop_last and few samples nothing is left.
#include "training/data/distributed_sampler.hpp"
#include "training/pitfalls/classifier.hpp"
#include "training/pitfalls/experiments.hpp"

#include <cmath>

namespace bench::training {
namespace {

// What a rank validates on: the sampler's share, or every world_size-th sample without padding.
std::vector<std::int64_t> validated(const Lab& lab, std::int64_t samples) {
  if (!lab.cured())
    return DistributedSampler({.length = samples,
                               .world_size = lab.world_size(),
                               .rank = lab.rank(),
                               .shuffle = false,
                               .drop_last = lab.form() == "empties"})
        .indices();
  std::vector<std::int64_t> own;
  for (std::int64_t i = lab.rank(); i < samples; i += lab.world_size()) own.push_back(i);
  return own;
}

}  // namespace

void sampler_pads_or_empties(Lab& lab) {
  const std::int64_t samples = lab.form() == "empties" ? 3 : 10;
  const Samples validation = fashion_samples(0, samples, lab.device());
  const auto model = lab.model(classifier(), lab.seed());
  const auto own = validated(lab, samples);
  double right = 0;
  if (!own.empty()) {
    const Samples mine = rows(validation, own);
    right = std::round(accuracy(*model, mine) * static_cast<double>(mine.count()));
  }
  const double all_right = lab.all_reduce_sum(right);
  const double counted = lab.all_reduce_sum(static_cast<double>(own.size()));
  Json& evidence = lab.evidence();
  evidence["dataset_size"] = samples;
  evidence["evaluated"] = own;
  evidence["right"] = all_right;
  evidence["counted"] = counted;
  if (counted > 0) evidence["metric"] = all_right / counted;  // else not a number
}

}  // namespace bench::training
