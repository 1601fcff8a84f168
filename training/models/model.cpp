#include "training/models/model.hpp"

#include "training/models/script_model.hpp"
#include "training/models/zoo.hpp"

namespace bench::training {

std::unique_ptr<Model> make_model(const ModelSpec& spec, std::uint64_t seed, Scale scale,
                                  Init init) {
  if (spec.file.empty()) return make_zoo_model(spec, seed, scale, init);
  std::unique_ptr<Model> model = load_script_model(spec);
  if (scale == Scale::twin) model->disable_dropout();
  return model;
}

void Model::copy_description(const Model& other) {
  loss_kind = other.loss_kind;
  input_shape = other.input_shape;
  output_shape = other.output_shape;
  input_dtype = other.input_dtype;
  target_classes = other.target_classes;
  token_count = other.token_count;
}

torch::Tensor model_loss(LossKind kind, const torch::Tensor& output, const torch::Tensor& target) {
  if (kind == LossKind::mse) return torch::mse_loss(output, target);
  // Sequences have one class target per position: [B, T, C] against [B, T].
  if (output.dim() > 2) {
    return torch::cross_entropy_loss(output.flatten(0, -2), target.flatten());
  }
  return torch::cross_entropy_loss(output, target);
}

}  // namespace bench::training
