// Scaling that one process and several need differently: a summed loss, whose gradient DDP divides
// by the number of ranks, and a learning rate that stays while the global batch grows.
#include "training/data/distributed_sampler.hpp"
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/classifier.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr int kScalingSeeds = 5;
constexpr std::int64_t kScalingTrained = 1500;
constexpr std::int64_t kScalingValidated = 2000;
constexpr std::int64_t kScalingBatch = 20;  // of one process, to which kScalingRate fits
constexpr double kScalingRate = 0.02;

void summed_loss(Lab& lab) {
  const auto model = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  // One process with the samples of all ranks.
  const auto reference = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < lab.world_size(); ++rank)
    all.push_back(torch::full({4, 4}, static_cast<float>(rank + 1)));
  run_backward(reference->forward(to_vgpu(torch::cat(all), lab.device().index())).sum());

  const auto ddp = lab.wrap(*model);
  const at::Tensor loss = call(*ddp, rank_input(lab)).sum();
  // The cure here: the factor that undoes DDP's mean. Dividing by the global count is another.
  run_backward(lab.cured() ? loss * lab.world_size() : loss);
  Json& evidence = lab.evidence();
  evidence["summed_gradient"] = gradient_sum(*model);
  evidence["summed_gradient_of_one_process"] = gradient_sum(*reference);
}

void unscaled_rate(Lab& lab) {
  const Samples train = fashion_samples(0, kScalingTrained, lab.device());
  const Samples validation = fashion_samples(kScalingTrained, kScalingValidated, lab.device());
  const double rate = kScalingRate * (lab.cured() ? lab.world_size() : 1);
  Json& evidence = lab.evidence();
  for (int i = 0; i < kScalingSeeds; ++i) {
    const std::uint64_t seed = lab.seed() + static_cast<std::uint64_t>(i);
    const auto model = lab.model(classifier(), seed);
    const auto ddp = lab.wrap(*model);
    const DistributedSampler sampler({.length = kScalingTrained,
                                      .world_size = lab.world_size(),
                                      .rank = lab.rank(),
                                      .seed = seed});
    train_epoch(lab, *ddp, *model, train, sampler.indices(), kScalingBatch, rate);
    evidence["accuracy"].push_back(accuracy(*model, validation));
  }
  evidence["collectives"] = Json::array();
  evidence["batch_of_one_process"] = kScalingBatch;
  evidence["global_batch"] = kScalingBatch * lab.world_size();
  evidence["rate_of_one_process"] = kScalingRate;
  evidence["learning_rate"] = rate;
}

}  // namespace

void loss_or_lr_scaling(Lab& lab) {
  lab.form() == "sum-loss" ? summed_loss(lab) : unscaled_rate(lab);
}

}  // namespace bench::training
