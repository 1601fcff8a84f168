// Every model of the zoo trains on a virtual GPU: numerically as on the CPU, and in shape execution
// with the same bytes.
#include "bench/core/model_catalog.hpp"

#include "training/data/synthetic.hpp"
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/model.hpp"

#include <gtest/gtest.h>

#include "tests/torch/python_oracle.hpp"

namespace bench::training {
namespace {

struct StepResult {
  double loss = 0;
  std::vector<torch::Tensor> gradients;  // on the CPU
  std::uint64_t peak_bytes = 0;
};

void use_execution(Execute execute) {
  register_vgpu({.device_count = 1, .execute = execute, .memory_bytes = 0});
}

// One training step of a model on the CPU (device -1) or on vgpu:0.
StepResult train_one_step(const ModelSpec& spec, Scale scale, std::int64_t batch, int device) {
  const bool values = device < 0 || !shape_execution();
  const auto model = make_model(spec, 1, scale, values ? Init::seeded : Init::none);
  Batch data = draw_synthetic(BatchShape(*model), 1, 0, {0, batch}, values);
  StepResult result;
  if (device >= 0) {
    reset_peak(device);
    move_model(*model, vgpu_device(device));
    data = {to_vgpu(data.input, device), to_vgpu(data.target, device)};
  }
  const torch::Tensor loss = model_loss(model->loss_kind, model->forward(data.input), data.target);
  run_backward(loss);
  for (const NamedTensor& p : model->parameters()) {
    if (!p.tensor.grad().defined()) throw std::runtime_error(p.name + " has no gradient");
    if (values) result.gradients.push_back(p.tensor.grad().cpu());
  }
  if (values) result.loss = loss.item<double>();
  if (device >= 0) result.peak_bytes = peak_bytes(device);
  return result;
}

ModelSpec zoo_model(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  return spec;
}

// Numerically a step gives what it gives on the CPU; in shape execution it takes the same bytes.
void expect_cpus_values_and_same_bytes(const ModelSpec& spec) {
  use_execution(Execute::numeric);  // before the first backward, which fixes the engine's threads
  const StepResult cpu = train_one_step(spec, Scale::twin, 4, -1);
  const StepResult vgpu = train_one_step(spec, Scale::twin, 4, 0);
  EXPECT_EQ(vgpu.loss, cpu.loss);
  ASSERT_EQ(vgpu.gradients.size(), cpu.gradients.size());
  for (std::size_t i = 0; i < cpu.gradients.size(); ++i) {
    EXPECT_TRUE(torch::allclose(vgpu.gradients[i], cpu.gradients[i], 1e-5, 1e-7)) << i;
  }
  use_execution(Execute::shape);
  EXPECT_EQ(train_one_step(spec, Scale::twin, 4, 0).peak_bytes, vgpu.peak_bytes);
}

class ZooOnVgpu : public testing::TestWithParam<std::string> {};

TEST_P(ZooOnVgpu, TwinTrainsAsOnTheCpu) {
  expect_cpus_values_and_same_bytes(zoo_model(GetParam()));
}

TEST_P(ZooOnVgpu, FullSizeTrainsInShapeExecution) {
  use_execution(Execute::shape);
  start_recording();  // every operator's cost is asked for as well
  const StepResult result = train_one_step(zoo_model(GetParam()), Scale::full, 8, 0);
  EXPECT_FALSE(stop_recording().operations.empty());
  const auto parameters = static_cast<std::uint64_t>(find_model(GetParam())->parameter_count);
  EXPECT_GT(result.peak_bytes, 2 * sizeof(float) * parameters);  // and their gradients
}

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const ModelEntry& entry : model_catalog()) names.emplace_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, ZooOnVgpu, testing::ValuesIn(zoo_names()),
                         [](const auto& info) { return info.param; });

class ScriptOnVgpu : public testing::TestWithParam<std::string> {};

TEST_P(ScriptOnVgpu, TrainsAsOnTheCpu) {
  const nlohmann::json oracle = read_oracle("scripts.json");
  ModelSpec spec;
  spec.name = GetParam();
  spec.file = oracle_path(spec.name + ".pt");
  spec.input_shape = oracle[spec.name]["input"].get<std::vector<std::int64_t>>();
  if (spec.name == "tied_language_model") spec.input_dtype = "int64";
  expect_cpus_values_and_same_bytes(spec);
}

INSTANTIATE_TEST_SUITE_P(Files, ScriptOnVgpu,
                         testing::Values("resnet18", "squeezenet1_1", "autoencoder", "two_heads",
                                         "tied_language_model"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace bench::training
