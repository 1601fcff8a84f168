// The optimizer was built from parameters that the move then replaced, as it does for XLA, tensor
// subclasses and torch.__future__.set_overwrite_module_params_on_conversion: it updates tensors
// that the model no longer has.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <algorithm>

namespace bench::training {
namespace {

constexpr int kMovedSteps = 5;

}  // namespace

void optimizer_before_device_move(Lab& lab) {
  const ZooModel before(linear({.in = 4, .out = 4}), lab.seed());
  // The model after a move that replaces: equal values, other parameters.
  const auto moved = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  std::vector<at::Tensor> held;
  for (const NamedTensor& parameter :
       lab.cured() ? moved->parameters() : static_cast<const Model&>(before).parameters())
    held.push_back(parameter.tensor);
  torch::optim::SGD optimizer(held, torch::optim::SGDOptions(0.01));

  Json& evidence = lab.evidence();
  const at::Tensor input = to_vgpu(torch::ones({4, 4}), lab.device().index());
  const double start = weight_sum(*moved);
  for (int step = 0; step < kMovedSteps; ++step) {
    optimizer.zero_grad();
    clear_gradients(*moved);
    const at::Tensor loss = moved->forward(input).square().mean();
    evidence["losses"].push_back(loss.detach().cpu().item<double>());
    run_backward(loss);
    optimizer.step();
  }
  int shared = 0;
  for (const NamedTensor& parameter : moved->parameters())
    shared +=
        std::any_of(held.begin(), held.end(),
                    [&](const at::Tensor& tensor) { return tensor.is_same(parameter.tensor); })
            ? 1
            : 0;
  evidence["optimizer_parameters"] = held.size();
  evidence["optimizer_parameters_in_model"] = shared;
  evidence["weight_change"] = weight_sum(*moved) - start;
  evidence["optimizer_steps"] = kMovedSteps;
}

}  // namespace bench::training
