// The optimizers a case can name, with what the benchmark needs to know about their state.
#pragma once

#include "bench/core/case.hpp"

#include <torch/torch.h>

#include <memory>
#include <vector>

namespace bench::training {

// torch::optim::SGD or Adam; throws UsageError on another name.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerSpec& spec,
                                                        std::vector<at::Tensor> parameters);

// Tensors of the optimizer's state: momentum buffers, Adam's moments. Empty before the first step.
std::vector<at::Tensor> optimizer_state(torch::optim::Optimizer& optimizer);

}  // namespace bench::training
