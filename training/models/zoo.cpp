#include "training/models/zoo.hpp"

#include "bench/core/error.hpp"
#include "bench/core/model_catalog.hpp"
#include "bench/core/nearest.hpp"

#include "training/models/families.hpp"
#include "training/models/zoo_model.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace bench::training {
namespace {

constexpr std::int64_t kImageNetClasses = 1000;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

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
std::vector<std::int64_t> sample_shape(const ModelEntry& described, const ZooEntry& entry,
                                       const ModelSpec& spec, Scale scale) {
  const auto& wanted = spec.input_shape;
  const auto& full = described.input_shape;
  std::vector<std::int64_t> shape = scale == Scale::twin ? described.twin_input_shape : full;
  if (wanted.empty() || wanted == full) return shape;
  const bool image = entry.task == ZooTask::classification && wanted.size() == 3 &&
                     wanted[0] == full[0] && wanted[1] > 0 && wanted[2] > 0;
  const bool text = entry.task == ZooTask::language && wanted.size() == 1 && wanted[0] > 0 &&
                    wanted[0] <= full[0];
  if (!image && !text) {
    const char* also = entry.task == ZooTask::classification ? " or another height and width"
                       : entry.task == ZooTask::language     ? " token ids or fewer"
                                                             : "";
    throw UsageError("--input " + shape_text(wanted) + ": model " + std::string(entry.name) +
                     " takes samples of " + shape_text(full) + also);
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    shape[i] = scale == Scale::full ? wanted[i] : std::min(wanted[i], shape[i]);
  }
  return shape;
}

void describe(Model& model, const ZooEntry& entry, const ZooRequest& request) {
  model.input_shape = request.input_shape;
  model.output_shape = {request.outputs};
  if (entry.task == ZooTask::regression) {
    model.loss_kind = LossKind::mse;
    return;
  }
  model.loss_kind = LossKind::cross_entropy;
  model.target_classes = request.outputs;
  if (entry.task == ZooTask::classification) return;
  model.input_dtype = torch::kInt64;
  model.token_count = request.outputs;
  model.output_shape = {request.input_shape[0], request.outputs};
}

// A ResNet of the zoo. Its twin has a quarter of the channels and five blocks, with and without a
// projection and a stride, because verification trains a copy per rank in float64.
Network::Build zoo_resnet(const ZooRequest& request, ResNetOptions full) {
  constexpr std::array<std::int64_t, 4> kTwinBlocks = {2, 1, 1, 1};
  constexpr std::int64_t kTwinWidth = 16;
  if (request.twin) {
    std::copy(kTwinBlocks.begin(), kTwinBlocks.end(), full.blocks);
    full.base_width = kTwinWidth;
  }
  return resnet(full, request.outputs);
}

// Tokens are inputs and outputs. The twin is as long as its sequences.
TransformerOptions transformer(const ZooRequest& request, TransformerOptions full) {
  if (request.twin) return {request.outputs, request.input_shape[0], 64, 2, 4};
  full.vocabulary = request.outputs;
  return full;
}

constexpr ZooTask kClassification = ZooTask::classification;

}  // namespace

// Twins of the networks beyond 30 million parameters have fewer or narrower layers: verification
// trains one copy per rank on the CPU.
std::span<const ZooEntry> zoo() {
  static const std::vector<ZooEntry> kZoo = {
      {"mlp", ZooTask::regression, 6400, 640,
       [](const ZooRequest& r) { return linear_regressor(r.input_shape[0], r.outputs); }},
      {"resnet18", kClassification, kImageNetClasses, kImageNetClasses,
       [](const ZooRequest& r) {
         return zoo_resnet(r, {.blocks = {2, 2, 2, 2}});
       }},
      {"resnet34", kClassification, kImageNetClasses, kImageNetClasses,
       [](const ZooRequest& r) {
         return zoo_resnet(r, {.blocks = {3, 4, 6, 3}});
       }},
      {"resnet50", kClassification, kImageNetClasses, kImageNetClasses,
       [](const ZooRequest& r) {
         return zoo_resnet(r, {.bottleneck = true, .blocks = {3, 4, 6, 3}});
       }},
      {"resnet101", kClassification, kImageNetClasses, kImageNetClasses,
       [](const ZooRequest& r) {
         return zoo_resnet(r, {.bottleneck = true, .blocks = {3, 4, 23, 3}});
       }},
      {"resnet152", kClassification, kImageNetClasses, kImageNetClasses,
       [](const ZooRequest& r) {
         return zoo_resnet(r, {.bottleneck = true, .blocks = {3, 8, 36, 3}});
       }},
      {"resnext50_32x4d", kClassification, kImageNetClasses, kImageNetClasses,
       [](const ZooRequest& r) {
         return zoo_resnet(
             r, {.bottleneck = true, .blocks = {3, 4, 6, 3}, .groups = 32, .width_per_group = 4});
       }},
      {"wide_resnet50_2", kClassification, kImageNetClasses, kImageNetClasses,
       [](const ZooRequest& r) {
         return zoo_resnet(r, {.bottleneck = true, .blocks = {3, 4, 6, 3}, .width_per_group = 128});
       }},
      {"vgg16", kClassification, kImageNetClasses, kImageNetClasses,
       [](const ZooRequest& r) { return vgg16(r.twin ? 128 : 4096, r.outputs); }},
      {"densenet121", kClassification, kImageNetClasses, kImageNetClasses,
       [](const ZooRequest& r) {
         return densenet({6, 12, 24, 16}, r.outputs);
       }},
      {"mobilenet_v2", kClassification, kImageNetClasses, kImageNetClasses,
       [](const ZooRequest& r) { return mobilenet_v2(r.outputs); }},
      {"gpt2", ZooTask::language, 50257, 512,
       [](const ZooRequest& r) { return gpt2(transformer(r, {.positions = 1024})); }},
      {"bert_base", ZooTask::language, 30522, 512,
       [](const ZooRequest& r) { return bert(transformer(r, {.positions = 512})); }},
      {"bert_large", ZooTask::language, 30522, 512,
       [](const ZooRequest& r) {
         return bert(transformer(r, {.positions = 512, .width = 1024, .layers = 24, .heads = 16}));
       }},
  };
  return kZoo;
}

std::unique_ptr<Model> make_zoo_model(const ModelSpec& spec, std::uint64_t seed, Scale scale,
                                      Init init) {
  const ZooEntry& entry = zoo_entry(spec.name);
  const ModelEntry* described = find_model(entry.name);
  if (described == nullptr) throw std::logic_error("model missing from bench/core/model_catalog");
  return make_zoo_model(entry, *described, spec, seed, scale, init);
}

std::unique_ptr<Model> make_zoo_model(const ZooEntry& entry, const ModelEntry& described,
                                      const ModelSpec& spec, std::uint64_t seed, Scale scale,
                                      Init init) {
  ZooRequest request;
  request.twin = scale == Scale::twin;
  request.input_shape = sample_shape(described, entry, spec, scale);
  request.outputs = request.twin ? entry.twin_outputs : entry.outputs;
  if (spec.classes > 0 && entry.task == ZooTask::classification) request.outputs = spec.classes;
  std::optional<std::uint64_t> fill_seed;
  if (init == Init::seeded) fill_seed = seed;
  auto model = std::make_unique<ZooModel>(entry.build(request), fill_seed);
  describe(*model, entry, request);
  if (request.twin) model->disable_dropout();
  return model;
}

}  // namespace bench::training
