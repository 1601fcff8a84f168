// BatchNorm under DDP: every rank normalises with the statistics of its own few samples; with
// broadcast_buffers=False the running statistics stay apart as well.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/batch_norm_probe.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kRankRows = 4;
constexpr int kBufferSteps = 5;
constexpr double kEpsilon = 1e-5;

// The forward half of SyncBatchNorm: statistics over the batches of all ranks.
at::Tensor synchronised_norm(const Lab& lab, const at::Tensor& input) {
  const auto count = static_cast<double>(input.size(0) * lab.world_size());
  std::vector<at::Tensor> sums{torch::stack({input.sum(0), input.square().sum(0)})};
  lab.group()->allreduce(sums)->wait();
  const at::Tensor mean = sums[0][0] / count;
  const at::Tensor variance = sums[0][1] / count - mean.square();
  return (input - mean) / (variance + kEpsilon).sqrt();
}

void local_statistics(Lab& lab) {
  const auto model = lab.model(batch_norm2d(4), lab.seed());
  const auto ddp = lab.wrap(*model);
  const at::Tensor input = to_vgpu(probe_batch(kRankRows, lab.rank()), lab.device().index());
  const at::Tensor output = lab.cured() ? synchronised_norm(lab, input) : call(*ddp, input);
  Json& evidence = lab.evidence();
  evidence["probe_output"] = output.detach().cpu()[0].square().mean().item<double>();
  evidence["batch_rows"] = kRankRows;
}

void running_statistics(Lab& lab) {
  const auto model = lab.model(batch_norm2d(4), lab.seed());
  DdpOptions options;
  options.broadcast_buffers = lab.cured();
  const auto ddp = lab.wrap(*model, options);
  const at::Tensor input = to_vgpu(probe_batch(kRankRows, lab.rank()), lab.device().index());
  for (int step = 0; step < kBufferSteps; ++step) {
    clear_gradients(*model);
    run_backward(call(*ddp, input).sum());
    descend(*model, 0.01);
  }
  // Validation: a forward pass that leaves the statistics as they are.
  model->train(false);
  {
    const torch::NoGradGuard no_grad;
    call(*ddp, input, false);
  }
  Json& evidence = lab.evidence();
  evidence["running_mean"] = model->buffers().at(0).tensor.cpu().sum().item<double>();
  evidence["running_variance"] = model->buffers().at(1).tensor.cpu().sum().item<double>();
}

}  // namespace

void batchnorm_not_synchronised(Lab& lab) {
  lab.form() == "buffers-not-broadcast" ? running_statistics(lab) : local_statistics(lab);
}

}  // namespace bench::training
