// A model as the strategies see it: something with parameters that maps a batch to an output, and a
// loss. Zoo models (torch::nn) and TorchScript files stand behind the same interface.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/core/case.hpp"

namespace bench::training {

struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

// cross_entropy: int64 class targets [B]; mse: float targets of the output's shape. Mean reduction.
enum class LossKind { cross_entropy, mse };

class Model {
 public:
  virtual ~Model() = default;

  // Output for a batch [B, ...]; batch is the first dimension of input and output.
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;
  // Parameters and buffers in definition order. The handles are the model's own: rebinding a
  // handle's TensorImpl (shallow_copy_from) moves the model, see libtorch traps in training/devices.
  virtual std::vector<NamedTensor> parameters() const = 0;
  virtual std::vector<NamedTensor> buffers() const = 0;
  virtual void train(bool on) = 0;
  // A second instance of the same structure with tensors of its own (values equal, CPU): the shell
  // of a DataParallel replica, whose parameters a strategy rebinds every step.
  virtual std::unique_ptr<Model> shell() const = 0;
  // Sub-modules, leaves and containers, without the root: what Python's replicate() copies per device.
  virtual std::int64_t module_count() const = 0;

  // Zoo models as torch::nn, for torch::nn::parallel::data_parallel; null for TorchScript files.
  virtual std::shared_ptr<torch::nn::Module> torch_module() const { return nullptr; }

  LossKind loss_kind = LossKind::cross_entropy;
  std::vector<std::int64_t> input_shape;   // one sample
  std::vector<std::int64_t> output_shape;  // one sample; {classes} for classifiers
  torch::Dtype input_dtype = torch::kFloat32;
};

// Builds `spec` on the CPU, initialised from `seed`: the same spec and seed give the same bits in
// every process and under every strategy. Throws bench::UsageError for unknown names (listing the
// nearest ones), unreadable files and missing input shapes.
// `twin` builds the reduced variant that numeric verification uses where the case itself runs in
// shape execution (same code path, smaller layers or images); its figures say so.
enum class Scale { full, twin };
std::unique_ptr<Model> make_model(const ModelSpec& spec, std::uint64_t seed, Scale scale = Scale::full);

// loss of `output` against `target` under the model's loss kind, mean over the batch.
torch::Tensor model_loss(LossKind kind, const torch::Tensor& output, const torch::Tensor& target);

}  // namespace bench::training
