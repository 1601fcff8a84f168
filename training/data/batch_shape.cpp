#include "training/data/batch_shape.hpp"

namespace bench::training {
namespace {

torch::Tensor host_tensor(std::int64_t batch, const std::vector<std::int64_t>& sample,
                          torch::Dtype dtype, bool pinned) {
  return torch::empty(batch_sizes(batch, sample), torch::dtype(dtype).pinned_memory(pinned));
}

}  // namespace

std::vector<std::int64_t> batch_sizes(std::int64_t batch, const std::vector<std::int64_t>& sample) {
  std::vector<std::int64_t> sizes{batch};
  sizes.insert(sizes.end(), sample.begin(), sample.end());
  return sizes;
}

BatchShape::BatchShape(const Model& model)
    : input(model.input_shape),
      target(model.output_shape),
      input_dtype(model.input_dtype),
      loss_kind(model.loss_kind),
      token_count(model.token_count),
      target_classes(model.target_classes) {
  if (loss_kind == LossKind::cross_entropy) target.pop_back();  // classes, not scores
}

torch::Tensor BatchShape::empty_input(std::int64_t batch, bool pinned) const {
  return host_tensor(batch, input, input_dtype, pinned);
}

torch::Tensor BatchShape::empty_target(std::int64_t batch, bool pinned) const {
  return host_tensor(batch, target, target_dtype(), pinned);
}

}  // namespace bench::training
