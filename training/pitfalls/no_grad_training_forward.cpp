// The training forward pass runs under no_grad: there is no graph to go back through.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <optional>

namespace bench::training {
namespace {

constexpr int kNoGradSteps = 3;

}  // namespace

void no_grad_training_forward(Lab& lab) {
  const auto model = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  const auto ddp = lab.wrap(*model);
  const at::Tensor input = rank_input(lab);
  Json& evidence = lab.evidence();
  evidence["steps"] = 0;
  evidence["grad_in_training_forward"] = lab.cured();
  lab.attempt([&] {
    for (int step = 0; step < kNoGradSteps; ++step) {
      clear_gradients(*model);
      at::Tensor loss;
      {
        std::optional<torch::NoGradGuard> no_grad;
        if (!lab.cured()) no_grad.emplace();
        // As in Python, the reducer is prepared only where a backward pass can follow.
        loss = call(*ddp, input, torch::GradMode::is_enabled()).sum();
      }
      run_backward(loss);
      descend(*model, 0.01);
      evidence["steps"] = step + 1;
    }
  });
}

}  // namespace bench::training
