// A shuffling DistributedSampler whose epoch is never set, and what that does to validation
// accuracy over several seeds.
#include "training/data/distributed_sampler.hpp"
#include "training/pitfalls/classifier.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

constexpr int kSeeds = 5;
constexpr int kEpochs = 3;
constexpr std::int64_t kTrained = 1200;
constexpr std::int64_t kValidated = 5000;
constexpr std::int64_t kBatch = 10;  // per rank: small, so that the order matters
constexpr double kRate = 0.02;

}  // namespace

void missing_set_epoch(Lab& lab) {
  const Samples train = fashion_samples(0, kTrained, lab.device());
  const Samples validation = fashion_samples(kTrained, kValidated, lab.device());
  Json& evidence = lab.evidence();
  evidence["shuffled"] = true;
  for (int i = 0; i < kSeeds; ++i) {
    const std::uint64_t seed = lab.seed() + static_cast<std::uint64_t>(i);
    const auto model = lab.model(classifier(), seed);
    const auto ddp = lab.wrap(*model);
    DistributedSampler sampler(
        {.length = kTrained, .world_size = lab.world_size(), .rank = lab.rank(), .seed = seed});
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      if (lab.cured()) sampler.set_epoch(static_cast<std::uint64_t>(epoch));
      const auto order = sampler.indices();
      if (i == 0) evidence["epoch_orders"].push_back(order_hash(order));
      train_epoch(lab, *ddp, *model, train, order, kBatch, kRate);
    }
    evidence["accuracy"].push_back(accuracy(*model, validation));
  }
  evidence["collectives"].clear();  // thousands of equal all-reduces show nothing here
}

}  // namespace bench::training
