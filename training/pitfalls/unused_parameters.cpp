// A layer that the loss does not reach. The first step passes; the second raises PyTorch's error.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

constexpr int kSteps = 3;

// The second layer is there, and no output depends on it.
Network::Build with_unused_layer() {
  return [](Network& self) -> Network::Forward {
    const Part used = self.add("used", linear({.in = 4, .out = 4}));
    self.add("unused", linear({.in = 4, .out = 4}));
    return [=](const Network&, const at::Tensor& input) { return used->forward(input); };
  };
}

}  // namespace

void unused_parameters(Lab& lab) {
  const auto model = lab.model(with_unused_layer(), lab.seed());
  DdpOptions options;
  options.find_unused_parameters = lab.cured();
  const auto ddp = lab.wrap(*model, options);
  const at::Tensor input = to_vgpu(torch::ones({2, 4}), lab.device().index());
  lab.evidence()["steps"] = 0;
  lab.evidence()["find_unused_parameters"] = options.find_unused_parameters;
  lab.evidence()["unused_parameters"] = 2;  // weight and bias of the second layer
  lab.attempt([&] {
    for (int step = 0; step < kSteps; ++step) {
      clear_gradients(*model);
      run_backward(call(*ddp, input).sum());
      descend(*model, 0.01);
      lab.evidence()["steps"] = step + 1;
    }
  });
}

}  // namespace bench::training
