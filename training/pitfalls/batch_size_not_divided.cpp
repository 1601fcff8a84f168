// A total batch size handed to the loader of every rank: the global batch is world size times what
// was meant, and an epoch has so many fewer steps.
#include "training/data/distributed_sampler.hpp"
#include "training/pitfalls/classifier.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr int kUndividedSeeds = 5;
constexpr std::int64_t kUndividedTrained = 1500;
constexpr std::int64_t kUndividedValidated = 2000;
constexpr std::int64_t kTotalBatch = 20;
constexpr double kTotalRate = 0.02;

}  // namespace

void batch_size_not_divided(Lab& lab) {
  const Samples train = fashion_samples(0, kUndividedTrained, lab.device());
  const Samples validation = fashion_samples(kUndividedTrained, kUndividedValidated, lab.device());
  const std::int64_t batch = lab.cured() ? kTotalBatch / lab.world_size() : kTotalBatch;
  Json& evidence = lab.evidence();
  for (int i = 0; i < kUndividedSeeds; ++i) {
    const std::uint64_t seed = lab.seed() + static_cast<std::uint64_t>(i);
    const auto model = lab.model(classifier(), seed);
    const auto ddp = lab.wrap(*model);
    const DistributedSampler sampler({.length = kUndividedTrained,
                                      .world_size = lab.world_size(),
                                      .rank = lab.rank(),
                                      .seed = seed});
    evidence["epoch_steps"] =
        train_epoch(lab, *ddp, *model, train, sampler.indices(), batch, kTotalRate);
    evidence["accuracy"].push_back(accuracy(*model, validation));
  }
  evidence["collectives"] = Json::array();
  evidence["rank_batch"] = batch;
  evidence["total_batch_meant"] = kTotalBatch;
}

}  // namespace bench::training
