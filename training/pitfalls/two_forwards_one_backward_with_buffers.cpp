// Two forward passes before one backward pass, in a model whose buffers change in place between
// them: by DDP's broadcast before the second forward, or by the model itself.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr int kPairSteps = 3;

Network::Build normalised_layer() {
  return sequential({linear({.in = 4, .out = 4}), batch_norm2d(4), linear({.in = 4, .out = 4})});
}

// Scales its output by a running factor that every forward pass updates in place. What multiplies
// is the buffer itself, or (the cure) a copy that later updates leave alone.
Network::Build running_scale(bool copies) {
  return [=](Network& self) -> Network::Forward {
    const Part part = self.add("part", linear({.in = 4, .out = 4}));
    const at::Tensor scale = self.buffer("scale", torch::ones({4}));
    return [=](const Network&, const at::Tensor& input) {
      const at::Tensor output = part->forward(input) * (copies ? scale.clone() : scale);
      const torch::NoGradGuard no_grad;
      scale.mul_(0.9);
      return output;
    };
  };
}

}  // namespace

void two_forwards_one_backward_with_buffers(Lab& lab) {
  const bool own = lab.form() == "buffer-changed-in-forward";
  const auto model = lab.model(own ? running_scale(lab.cured()) : normalised_layer(), lab.seed());
  const auto ddp = lab.wrap(*model);
  const at::Tensor left = rank_input(lab);
  const at::Tensor right = rank_input(lab) * 2;
  const bool together = lab.cured() && !own;  // the cure: one pass over both inputs
  Json& evidence = lab.evidence();
  evidence["forwards_per_backward"] = together ? 1 : 2;
  evidence["buffers"] = model->buffers().size();
  evidence["steps"] = 0;
  lab.attempt([&] {
    for (int step = 0; step < kPairSteps; ++step) {
      clear_gradients(*model);
      at::Tensor loss;
      if (together) {
        loss = call(*ddp, torch::cat({left, right})).sum();
      } else {
        loss = call(*ddp, left).sum();
        loss = loss + call(*ddp, right).sum();
      }
      run_backward(loss);
      descend(*model, 0.001);
      evidence["steps"] = step + 1;
    }
  });
}

}  // namespace bench::training
