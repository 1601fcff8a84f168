// Gradients are clipped while they still carry the loss scale: nearly nothing is left of them once
// they are unscaled.
#include "training/data/distributed_sampler.hpp"
#include "training/devices/recorder.hpp"
#include "training/pitfalls/classifier.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr int kClipSeeds = 3;
constexpr std::int64_t kClipTrained = 1000;
constexpr std::int64_t kClipValidated = 1000;
constexpr std::int64_t kClipBatch = 10;
constexpr double kLossScale = 65536;  // GradScaler's first
constexpr double kLargestNorm = 1;
constexpr double kClipRate = 0.05;

double gradient_norm(const Model& model) {
  double squares = 0;
  for (const NamedTensor& parameter : model.parameters())
    squares += parameter.tensor.grad().square().sum().cpu().item<double>();
  return std::sqrt(squares);
}

void scale_gradients(const Model& model, double factor) {
  for (const NamedTensor& parameter : model.parameters())
    parameter.tensor.mutable_grad().mul_(factor);
}

// clip_grad_norm_. Returns the norm that it saw.
double clip_gradients(const Model& model) {
  const double norm = gradient_norm(model);
  if (norm > kLargestNorm) scale_gradients(model, kLargestNorm / norm);
  return norm;
}

void train_clipped(Lab& lab, ZooModel& model, const Samples& samples, std::uint64_t seed) {
  const auto ddp = lab.wrap(model);
  const DistributedSampler sampler({.length = samples.count(),
                                    .world_size = lab.world_size(),
                                    .rank = lab.rank(),
                                    .seed = seed});
  const Samples mine = rows(samples, sampler.indices());
  Json& evidence = lab.evidence();
  for (std::int64_t begin = 0; begin + kClipBatch <= mine.count(); begin += kClipBatch) {
    clear_gradients(model);
    const at::Tensor output = call(*ddp, mine.images.narrow(0, begin, kClipBatch));
    const auto loss = torch::cross_entropy_loss(output, mine.labels.narrow(0, begin, kClipBatch));
    run_backward(loss * kLossScale);
    evidence["gradient_norm"] = gradient_norm(model) / kLossScale;
    if (lab.cured()) scale_gradients(model, 1 / kLossScale);
    evidence["norm_seen_by_clip"] = clip_gradients(model);
    if (!lab.cured()) scale_gradients(model, 1 / kLossScale);
    evidence["norm_applied"] = gradient_norm(model);
    descend(model, kClipRate);
    lab.heartbeat();
  }
}

}  // namespace

void gradient_clip_before_unscale(Lab& lab) {
  const Samples train = fashion_samples(0, kClipTrained, lab.device());
  const Samples validation = fashion_samples(kClipTrained, kClipValidated, lab.device());
  Json& evidence = lab.evidence();
  for (int i = 0; i < kClipSeeds; ++i) {
    const std::uint64_t seed = lab.seed() + static_cast<std::uint64_t>(i);
    const auto model = lab.model(classifier(), seed);
    train_clipped(lab, *model, train, seed);
    evidence["accuracy"].push_back(accuracy(*model, validation));
  }
  evidence["loss_scale"] = kLossScale;
  evidence["largest_norm"] = kLargestNorm;
  evidence["collectives"] = Json::array();
}

}  // namespace bench::training
