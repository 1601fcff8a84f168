// A loader without DistributedSampler under DDP: every rank shuffles the whole data set with the
// same seed and trains on the same samples.
#include "training/data/distributed_sampler.hpp"
#include "training/pitfalls/classifier.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kSharded = 1000;
constexpr std::int64_t kHeldOut = 1000;
constexpr std::int64_t kShardBatch = 20;
constexpr int kShardSeeds = 3;

// This rank's order of an epoch.
std::vector<std::int64_t> order_of(const Lab& lab, std::uint64_t seed) {
  if (!lab.cured()) return RandomSampler(kSharded, seed).next_pass();
  return DistributedSampler(
             {.length = kSharded, .world_size = lab.world_size(), .rank = lab.rank(), .seed = seed})
      .indices();
}

}  // namespace

void data_not_sharded(Lab& lab) {
  const Samples train = fashion_samples(0, kSharded, lab.device());
  const Samples held_out = fashion_samples(kSharded, kHeldOut, lab.device());
  Json& evidence = lab.evidence();
  evidence["dataset_size"] = kSharded;
  for (int i = 0; i < kShardSeeds; ++i) {
    const std::uint64_t seed = lab.seed() + static_cast<std::uint64_t>(i);
    const auto model = lab.model(classifier(), seed);
    const auto ddp = lab.wrap(*model);
    const auto order = order_of(lab, seed);
    if (i == 0) evidence["indices"] = order;
    evidence["steps"] = train_epoch(lab, *ddp, *model, train, order, kShardBatch, 0.05);
    evidence["accuracy"].push_back(accuracy(*model, held_out));
  }
  evidence["collectives"].clear();
}

}  // namespace bench::training
