#include "training/models/zoo.hpp"

#include "bench/core/error.hpp"
#include "bench/core/model_catalog.hpp"
#include "bench/core/nearest.hpp"

#include "training/models/families.hpp"

#include <utility>

namespace bench::training {
namespace {

constexpr std::int64_t kImageNetClasses = 1000;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

class ZooModel : public Model {
 public:
  ZooModel(Network::Build build, Init init, std::optional<std::uint64_t> seed)
      : build_(std::move(build)), filled_(init == Init::seeded) {
    const InitScope scope(seed);
    network_ = std::make_shared<Network>(build_);
  }

  torch::Tensor forward(const torch::Tensor& input) override { return network_->forward(input); }
  void train(bool on) override { network_->train(on); }
  std::shared_ptr<Network> torch_module() const override { return network_; }

  std::vector<NamedTensor> parameters() const override {
    std::vector<NamedTensor> tensors;
    for (const auto& item : network_->named_parameters()) {
      tensors.push_back({item.key(), item.value()});
    }
    return tensors;
  }

  std::vector<NamedTensor> buffers() const override {
    std::vector<NamedTensor> tensors;
    for (const auto& item : network_->named_buffers()) {
      tensors.push_back({item.key(), item.value()});
    }
    return tensors;
  }

  std::int64_t module_count() const override {
    return static_cast<std::int64_t>(network_->modules(/*include_self=*/false).size());
  }

  std::unique_ptr<Model> shell() const override {
    auto copy = std::make_unique<ZooModel>(build_, Init::none, std::nullopt);
    copy->copy_description(*this);
    copy->train(network_->is_training());
    if (filled_) {
      copy_values(parameters(), copy->parameters());
      copy_values(buffers(), copy->buffers());
    }
    return copy;
  }

 private:
  void copy_description(const ZooModel& other) {
    loss_kind = other.loss_kind;
    input_shape = other.input_shape;
    output_shape = other.output_shape;
    input_dtype = other.input_dtype;
    target_classes = other.target_classes;
    token_count = other.token_count;
  }

  static void copy_values(const std::vector<NamedTensor>& from,
                          const std::vector<NamedTensor>& to) {
    torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i].tensor.is_cpu()) torch::Tensor(to[i].tensor).copy_(from[i].tensor);
    }
  }

  Network::Build build_;
  bool filled_;
  Part network_;
};

const ZooEntry& zoo_entry(const std::string& name) {
  std::vector<std::string> known;
  for (const ZooEntry& entry : zoo()) {
    if (entry.name == name) return entry;
    known.emplace_back(entry.name);
  }
  throw UsageError(unknown_name_message("model", name, known) +
                   " (or a TorchScript file ending in .pt)");
}

// The shape of one sample: the catalogue's, or the user's where it has the same form. A twin takes
// the smaller of the two in every dimension.
std::vector<std::int64_t> sample_shape(const ModelEntry& entry, const ModelSpec& spec,
                                       Scale scale) {
  std::vector<std::int64_t> shape =
      scale == Scale::twin ? entry.twin_input_shape : entry.input_shape;
  if (spec.input_shape.empty() || spec.input_shape == entry.input_shape) return shape;
  const bool same_form =
      spec.input_shape.size() == 3 && shape.size() == 3 && spec.input_shape[0] == shape[0];
  if (!same_form) {
    throw UsageError("--input " + shape_text(spec.input_shape) + ": model " +
                     std::string(entry.name) + " takes samples of " +
                     shape_text(entry.input_shape) +
                     (shape.size() == 3 ? " or another height and width" : ""));
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (spec.input_shape[i] < 1) throw UsageError("--input: sizes must be positive");
    const bool shrink = scale == Scale::full || spec.input_shape[i] < shape[i];
    if (shrink) shape[i] = spec.input_shape[i];
  }
  return shape;
}

}  // namespace

std::span<const ZooEntry> zoo() {
  static const std::vector<ZooEntry> kZoo = {
      {"mlp", [](const ZooRequest& r) { return linear_regressor(r.input_shape[0], r.outputs); },
       LossKind::mse, 6400, 640},
      {"resnet18",
       [](const ZooRequest& r) {
         return resnet({.blocks = {2, 2, 2, 2}}, r.outputs);
       },
       LossKind::cross_entropy, kImageNetClasses, kImageNetClasses},
      {"resnet50",
       [](const ZooRequest& r) {
         return resnet({.bottleneck = true, .blocks = {3, 4, 6, 3}}, r.outputs);
       },
       LossKind::cross_entropy, kImageNetClasses, kImageNetClasses},
  };
  return kZoo;
}

std::unique_ptr<Model> make_zoo_model(const ModelSpec& spec, std::uint64_t seed, Scale scale,
                                      Init init) {
  const ZooEntry& entry = zoo_entry(spec.name);
  const ModelEntry* described = find_model(entry.name);
  if (described == nullptr) throw std::logic_error("model missing from bench/core/model_catalog");
  ZooRequest request;
  request.input_shape = sample_shape(*described, spec, scale);
  request.outputs = scale == Scale::twin ? entry.twin_outputs : entry.outputs;
  if (spec.classes > 0 && entry.loss_kind == LossKind::cross_entropy)
    request.outputs = spec.classes;
  std::optional<std::uint64_t> fill_seed;
  if (init == Init::seeded) fill_seed = seed;
  auto model = std::make_unique<ZooModel>(entry.build(request), init, fill_seed);
  model->loss_kind = entry.loss_kind;
  model->input_shape = request.input_shape;
  model->output_shape = {request.outputs};
  if (entry.loss_kind == LossKind::cross_entropy) model->target_classes = request.outputs;
  return model;
}

}  // namespace bench::training
