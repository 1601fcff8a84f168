// Rank 0 validates through the wrapper of a model with buffers: its forward broadcasts them, and no
// other rank is there to receive.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

// With few channels the buffers are smaller than the order of the buckets, which DDP broadcasts
// once after the first step, and the two are taken for one another; with many they do not fit.
constexpr std::int64_t kFewChannels = 2;
constexpr std::int64_t kManyChannels = 64;

Network::Build with_buffers(std::int64_t channels) {
  return sequential({conv2d({.in = 1, .out = channels}), batch_norm2d(channels)});
}

}  // namespace

void rank0_forward_through_wrapper(Lab& lab) {
  const auto model = lab.model(
      with_buffers(lab.form() == "size-mismatch" ? kManyChannels : kFewChannels), lab.seed());
  const auto ddp = lab.wrap(*model);
  const at::Tensor input = rank_input(lab, {4, 1, 4, 4});
  lab.publish_eagerly();
  lab.attempt([&] {
    for (int epoch = 0; epoch < 2; ++epoch) {
      lab.phase("training");
      run_backward(call(*ddp, input).sum());
      if (lab.rank() == 0) {
        lab.phase("validation on rank 0");
        const torch::NoGradGuard no_grad;
        lab.evidence()["forwards_on_one_rank"] = lab.cured() ? 0 : epoch + 1;
        (void)(lab.cured() ? model->forward(input) : call(*ddp, input));
      }
    }
  });
}

}  // namespace bench::training
