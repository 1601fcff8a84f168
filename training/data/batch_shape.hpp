// What one sample of a model's input and target looks like, as sources of data need to know it.
#pragma once

#include "training/models/model.hpp"

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace bench::training {

struct BatchShape {
  explicit BatchShape(const Model& model);

  std::vector<std::int64_t> input;   // one sample
  std::vector<std::int64_t> target;  // one sample; empty for one class per sample
  torch::Dtype input_dtype = torch::kFloat32;
  LossKind loss_kind = LossKind::cross_entropy;
  std::int64_t token_count = 0;
  std::int64_t target_classes = 0;

  torch::Dtype target_dtype() const {
    return loss_kind == LossKind::mse ? torch::kFloat32 : torch::kInt64;
  }
  // Uninitialised host tensors for a batch, page-locked if asked.
  torch::Tensor empty_input(std::int64_t batch, bool pinned = false) const;
  torch::Tensor empty_target(std::int64_t batch, bool pinned = false) const;
};

// The sizes of a tensor of `batch` samples of the sizes `sample`.
std::vector<std::int64_t> batch_sizes(std::int64_t batch, const std::vector<std::int64_t>& sample);

}  // namespace bench::training
