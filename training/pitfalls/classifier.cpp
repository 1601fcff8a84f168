#include "training/pitfalls/classifier.hpp"

#include "bench/core/fnv_hash.hpp"

#include "training/data/batch_source.hpp"
#include "training/data/fashion_mnist.hpp"
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"

#include <string>

namespace bench::training {

Network::Build classifier() {
  return sequential({linear({.in = kFashionPixels, .out = 32}), relu(),
                     linear({.in = 32, .out = kFashionClasses})});
}

Samples fashion_samples(std::int64_t begin, std::int64_t count, at::Device device) {
  static const FashionMnist data(BatchOptions{}.directory);
  const ImageShaper shaper({kFashionPixels});
  Samples samples{torch::empty({count, kFashionPixels}), torch::empty({count}, torch::kInt64)};
  for (std::int64_t i = 0; i < count; ++i) {
    shaper.write(data.image(begin + i), samples.images.data_ptr<float>() + i * kFashionPixels);
    samples.labels.data_ptr<std::int64_t>()[i] = data.label(begin + i);
  }
  if (is_vgpu(torch::empty({0}, device))) {
    samples.images = to_vgpu(samples.images, device.index());
    samples.labels = to_vgpu(samples.labels, device.index());
  }
  return samples;
}

Samples rows(const Samples& samples, const std::vector<std::int64_t>& indices) {
  const at::Device device = samples.labels.device();
  at::Tensor which = torch::tensor(indices, torch::kInt64);
  if (is_vgpu(samples.labels)) which = to_vgpu(which, device.index());
  return {samples.images.index_select(0, which), samples.labels.index_select(0, which)};
}

int train_epoch(Lab& lab, Distributed& ddp, Model& model, const Samples& samples,
                const std::vector<std::int64_t>& order, std::int64_t batch, double rate) {
  const Samples mine = rows(samples, order);
  int steps = 0;
  for (std::int64_t begin = 0; begin + batch <= mine.count(); begin += batch) {
    clear_gradients(model);
    const at::Tensor output = call(ddp, mine.images.narrow(0, begin, batch));
    run_backward(torch::cross_entropy_loss(output, mine.labels.narrow(0, begin, batch)));
    descend(model, rate);
    lab.heartbeat();
    ++steps;
  }
  return steps;
}

double accuracy(Model& model, const Samples& samples) {
  const torch::NoGradGuard no_grad;
  const at::Tensor labels = model.forward(samples.images).argmax(1).cpu();
  return labels.eq(samples.labels.cpu()).to(torch::kFloat64).mean().item<double>();
}

std::string order_hash(const std::vector<std::int64_t>& order) {
  FnvHash hash;
  for (const std::int64_t index : order) hash.add(std::to_string(index) + " ");
  return hash.hex();
}

}  // namespace bench::training
