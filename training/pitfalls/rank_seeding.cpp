// Seeds: equal ones where ranks ought to differ (augmentation, dropout), different ones where they
// ought to agree (the split, the structure of the model).
#include "training/data/distributed_sampler.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/classifier.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kSplitLength = 1000;
constexpr std::int64_t kSplitValidated = 200;
constexpr std::int64_t kDraws = 64;

// Crops and dropout masks of one batch, as the rank's default generator draws them.
void draw_augmentation(Lab& lab) {
  const auto seed = lab.seed() + (lab.cured() ? static_cast<std::uint64_t>(lab.rank()) : 0);
  torch::manual_seed(seed);
  const at::Tensor crops = torch::randint(0, 8, {kDraws}, torch::kInt64);
  const at::Tensor kept = torch::dropout(torch::ones({kDraws}), 0.5, true).to(torch::kInt64);
  const auto hash = [](const at::Tensor& values) {
    const auto* data = values.data_ptr<std::int64_t>();
    return order_hash({data, data + values.numel()});
  };
  Json& evidence = lab.evidence();
  evidence["crops_hash"] = hash(crops);
  evidence["dropout_hash"] = hash(kept);
  evidence["draws"] = kDraws;
}

// random_split: the last part of a permutation is for validation.
void split_data(Lab& lab) {
  const auto seed = lab.seed() + (lab.cured() ? 0 : static_cast<std::uint64_t>(lab.rank()));
  const auto order = RandomSampler(kSplitLength, seed).next_pass();
  const auto cut = order.end() - kSplitValidated;
  Json& evidence = lab.evidence();
  evidence["train_split"] = std::vector<std::int64_t>(order.begin(), cut);
  evidence["validation_split"] = std::vector<std::int64_t>(cut, order.end());
}

// A depth of one or two layers, by the parity of the seed.
void draw_structure(Lab& lab) {
  const auto seed = lab.seed() + (lab.cured() ? 0 : static_cast<std::uint64_t>(lab.rank()));
  std::vector<Network::Build> layers(1 + seed % 2, linear({.in = 4, .out = 4}));
  const auto model = lab.model(sequential(layers), lab.seed());
  Json& evidence = lab.evidence();
  evidence["structure_parameters"] = model->parameters().size();
  evidence["wrapped"] = lab.attempt([&] { lab.wrap(*model); });
}

}  // namespace

void rank_seeding(Lab& lab) {
  if (lab.form() == "same-augmentation") return draw_augmentation(lab);
  lab.form() == "different-split" ? split_data(lab) : draw_structure(lab);
}

}  // namespace bench::training
