#include "training/strategies/optimizer.hpp"

#include "bench/core/error.hpp"

namespace bench::training {
namespace {

void append(std::vector<at::Tensor>& into, const at::Tensor& tensor) {
  if (tensor.defined()) into.push_back(tensor);
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerSpec& spec,
                                                        std::vector<at::Tensor> parameters) {
  if (spec.name == "sgd") {
    auto options = torch::optim::SGDOptions(spec.learning_rate).momentum(spec.momentum);
    return std::make_unique<torch::optim::SGD>(std::move(parameters), options);
  }
  if (spec.name == "adam") {
    auto options = torch::optim::AdamOptions(spec.learning_rate);
    return std::make_unique<torch::optim::Adam>(std::move(parameters), options);
  }
  throw UsageError("optimizer: unknown name '" + spec.name + "', expected sgd or adam");
}

std::vector<at::Tensor> optimizer_state(torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> tensors;
  for (const auto& [parameter, state] : optimizer.state()) {
    if (const auto* sgd = dynamic_cast<torch::optim::SGDParamState*>(state.get())) {
      append(tensors, sgd->momentum_buffer());
    } else if (const auto* adam = dynamic_cast<torch::optim::AdamParamState*>(state.get())) {
      append(tensors, adam->exp_avg());
      append(tensors, adam->exp_avg_sq());
    }
  }
  return tensors;
}

}  // namespace bench::training
