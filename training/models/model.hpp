// A model as the strategies see it: something with parameters that maps a batch to an output, and a
// loss. Zoo models (torch::nn) and TorchScript files stand behind the same interface.
#pragma once

#include "bench/core/case.hpp"

#include "training/models/network.hpp"

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bench::training {

struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

// cross_entropy: int64 class targets of the output's shape without its last dimension ([B]); mse:
// float targets of the output's shape. Mean reduction.
enum class LossKind { cross_entropy, mse };

class Model {
 public:
  virtual ~Model() = default;

  // Output for a batch [B, ...]; batch is the first dimension of input and output.
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;
  // Parameters and buffers in definition order. The handles are the model's own: rebinding a
  // handle's TensorImpl (shallow_copy_from) moves the model, see libtorch traps in
  // training/devices.
  virtual std::vector<NamedTensor> parameters() const = 0;
  virtual std::vector<NamedTensor> buffers() const = 0;
  virtual void train(bool on) = 0;
  // Leaves dropout out from now on. Verification needs it: the random masks of two strategies
  // cannot agree. Twins are built this way.
  virtual void disable_dropout() = 0;
  // A second instance of the same structure with CPU tensors of its own: the shell of a
  // DataParallel replica, whose tensors a strategy rebinds every step. Values are copied where this
  // model's own are filled and on the CPU, and unspecified elsewhere.
  virtual std::unique_ptr<Model> shell() const = 0;
  // Sub-modules, leaves and containers, without the root: what Python's replicate() copies per
  // device.
  virtual std::int64_t module_count() const = 0;

  // Zoo models as torch::nn, for torch::nn::parallel::data_parallel; null for TorchScript files.
  virtual std::shared_ptr<Network> torch_module() const { return nullptr; }

  LossKind loss_kind = LossKind::cross_entropy;
  std::vector<std::int64_t> input_shape;   // one sample
  std::vector<std::int64_t> output_shape;  // one sample; {classes} for classifiers
  torch::Dtype input_dtype = torch::kFloat32;
  std::int64_t target_classes = 0;  // cross_entropy: class targets are in [0, target_classes)
  std::int64_t token_count = 0;     // int64 input: token ids are in [0, token_count)

 protected:
  // For shell(): everything above that says what the model is fed with.
  void copy_description(const Model& other);
};

// Builds `spec` on the CPU, initialised from `seed`: the same spec and seed give the same bits in
// every process and under every strategy. Throws bench::UsageError for unknown names (listing the
// nearest ones), unreadable files and missing input shapes.
// `twin` builds the reduced variant that numeric verification uses where the case itself runs in
// shape execution (same code path, smaller layers or images); its figures say so.
enum class Scale { full, twin };
// none: random parameters are allocated but never written, for shape execution, where values do not
// matter; the memory is address space only and the largest model is built in milliseconds.
enum class Init { seeded, none };
std::unique_ptr<Model> make_model(const ModelSpec& spec, std::uint64_t seed,
                                  Scale scale = Scale::full, Init init = Init::seeded);

// loss of `output` against `target` under the model's loss kind, mean over the batch.
torch::Tensor model_loss(LossKind kind, const torch::Tensor& output, const torch::Tensor& target);

}  // namespace bench::training
