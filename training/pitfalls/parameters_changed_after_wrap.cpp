// Parameters frozen, unfrozen or added after the model was wrapped: the reducer goes on with the
// parameters it was built for.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <set>

namespace bench::training {
namespace {

constexpr int kChangedSteps = 4;

Network::Build two_layers() {
  return sequential({linear({.in = 4, .out = 4}), linear({.in = 4, .out = 4})});
}

void set_trainable(const Model& model, const std::string& prefix, bool on) {
  for (const NamedTensor& parameter : model.parameters())
    if (parameter.name.starts_with(prefix)) parameter.tensor.set_requires_grad(on);
}

std::set<std::string> trainable(const Model& model) {
  std::set<std::string> names;
  for (const NamedTensor& parameter : model.parameters())
    if (parameter.tensor.requires_grad()) names.insert(parameter.name);
  return names;
}

// Names in one of the sets only.
Json changed(const std::set<std::string>& before, const std::set<std::string>& after) {
  Json names = Json::array();
  for (const std::string& name : before)
    if (!after.contains(name)) names.push_back(name);
  for (const std::string& name : after)
    if (!before.contains(name)) names.push_back(name);
  return names;
}

// The mistake is to keep the wrapper; the cure is a new one after the change.
void change_layer(Lab& lab, bool frozen_later) {
  const auto model = lab.model(two_layers(), lab.seed());
  if (!frozen_later) set_trainable(*model, "0.", false);
  auto ddp = lab.wrap(*model);
  const auto wrapped = trainable(*model);
  set_trainable(*model, "0.", !frozen_later);
  const auto now = trainable(*model);
  if (lab.cured()) ddp = lab.wrap(*model);
  Json& evidence = lab.evidence();
  evidence["parameters_changed_after_wrap"] = changed(lab.cured() ? now : wrapped, now);
  evidence["steps"] = 0;
  lab.attempt([&] {
    for (int step = 0; step < kChangedSteps; ++step) {
      clear_gradients(*model);
      run_backward(call(*ddp, rank_input(lab)).sum());
      if (step == 0) evidence["changed_gradient_sum"] = gradient_sum(*model);
      descend(*model, 0.001);
      evidence["steps"] = step + 1;
    }
  });
}

// An adapter beside the wrapped model, as a LoRA layer that is added later.
class WithAdapter final : public ZooModel {
 public:
  explicit WithAdapter(std::uint64_t seed) : ZooModel(linear({.in = 4, .out = 4}), seed) {}
  void attach_to(Model& base) { base_ = &base; }
  at::Tensor adapt(const at::Tensor& input) { return ZooModel::forward(input); }
  at::Tensor forward(const at::Tensor& input) override {
    return adapt(input) + base_->forward(input);
  }
  std::vector<NamedTensor> parameters() const override {
    auto all = ZooModel::parameters();
    if (base_ == nullptr) return all;
    for (NamedTensor& parameter : all) parameter.name = "adapter." + parameter.name;
    for (const NamedTensor& parameter : base_->parameters()) all.push_back(parameter);
    return all;
  }

 private:
  Model* base_ = nullptr;
};

void add_adapter(Lab& lab) {
  const auto model = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  WithAdapter whole(lab.seed() + 1);
  move_model(whole, lab.device());
  whole.attach_to(*model);
  Model& wrapped = lab.cured() ? static_cast<Model&>(whole) : *model;
  const auto ddp = lab.wrap(wrapped);
  Json& evidence = lab.evidence();
  evidence["parameters_changed_after_wrap"] = changed(trainable(wrapped), trainable(whole));
  evidence["steps"] = 0;
  for (int step = 0; step < kChangedSteps; ++step) {
    clear_gradients(whole);
    const at::Tensor input = rank_input(lab);
    at::Tensor output = call(*ddp, input);
    if (!lab.cured()) output = output + whole.adapt(input);
    run_backward(output.sum());
    if (step == 0) evidence["changed_gradient_sum"] = gradient_sum(whole);
    descend(whole, 0.001);
    evidence["steps"] = step + 1;
  }
}

}  // namespace

void parameters_changed_after_wrap(Lab& lab) {
  if (lab.form() == "added") return add_adapter(lab);
  change_layer(lab, lab.form() == "frozen");
}

}  // namespace bench::training
