// A convolution turned to channels_last after the buckets were built: its gradient no longer has
// the strides of its place in the bucket, and is copied with a conversion in every step.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr int kStrideSteps = 5;
constexpr int kConversionStep = 2;  // after the second step has rebuilt the buckets

void to_channels_last(const Model& model) {
  const torch::NoGradGuard no_grad;
  for (const NamedTensor& parameter : model.parameters())
    if (parameter.tensor.dim() == 4) {
      const at::Tensor tensor = parameter.tensor;
      tensor.set_data(tensor.detach().contiguous(at::MemoryFormat::ChannelsLast));
    }
}

std::vector<std::int64_t> weight_strides(const at::Tensor& tensor) {
  return tensor.strides().vec();
}

}  // namespace

void grad_stride_mismatch(Lab& lab) {
  const auto model = lab.model(conv2d({.in = 8, .out = 8, .kernel = 3}), lab.seed());
  if (lab.cured()) to_channels_last(*model);
  const auto ddp = lab.wrap(*model);
  const at::Tensor weight = model->parameters().at(0).tensor;
  const at::Tensor input = rank_input(lab, {2, 8, 8, 8});
  Json& evidence = lab.evidence();
  std::vector<std::int64_t> wrapped = weight_strides(weight);
  for (int step = 0; step < kStrideSteps; ++step) {
    if (step == kConversionStep) {
      wrapped = weight_strides(weight);
      if (!lab.cured()) to_channels_last(*model);
    }
    clear_gradients(*model);
    run_backward(call(*ddp, input).mean());
    descend(*model, 1e-4);
  }
  evidence["bucket_strides"] = wrapped;
  evidence["weight_strides"] = weight_strides(weight);
  evidence["weight_bytes"] = weight.nbytes();
}

}  // namespace bench::training
