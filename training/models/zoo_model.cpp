#include "training/models/zoo_model.hpp"

#include <utility>

namespace bench::training {
namespace {

template <class Dictionary>
std::vector<NamedTensor> listed(const Dictionary& dictionary) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : dictionary) tensors.push_back({item.key(), item.value()});
  return tensors;
}

// Where a strategy has moved the model off the CPU there is nothing that could be copied here.
void copy_values(const std::vector<NamedTensor>& from, const std::vector<NamedTensor>& to) {
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].tensor.is_cpu()) to[i].tensor.copy_(from[i].tensor);
  }
}

}  // namespace

ZooModel::ZooModel(Network::Build build, std::optional<std::uint64_t> seed)
    : build_(std::move(build)), filled_(seed.has_value()) {
  const InitScope scope(seed);
  network_ = std::make_shared<Network>(build_);
}

void ZooModel::train(bool on) {
  network_->train(on);
  if (dropout_) return;
  for (const auto& module : network_->modules()) {
    const auto part = std::dynamic_pointer_cast<Network>(module);
    if (part && part->marked_as_dropout) part->eval();
  }
}

void ZooModel::disable_dropout() {
  dropout_ = false;
  train(network_->is_training());
}

std::vector<NamedTensor> ZooModel::parameters() const {
  return listed(network_->named_parameters());
}

std::vector<NamedTensor> ZooModel::buffers() const { return listed(network_->named_buffers()); }

std::int64_t ZooModel::module_count() const {
  return static_cast<std::int64_t>(network_->modules(/*include_self=*/false).size());
}

std::unique_ptr<Model> ZooModel::shell() const {
  auto copy = std::make_unique<ZooModel>(build_, std::nullopt);
  copy->copy_description(*this);
  if (filled_) {
    copy_values(parameters(), copy->parameters());
    copy_values(buffers(), copy->buffers());
  }
  copy->filled_ = filled_;
  copy->dropout_ = dropout_;
  copy->train(network_->is_training());
  return copy;
}

}  // namespace bench::training
