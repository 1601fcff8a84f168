#include "bench/core/error.hpp"
#include "bench/core/model_catalog.hpp"

#include "training/models/zoo.hpp"

#include <torch/nn/parallel/data_parallel.h>

#include <gtest/gtest.h>

#include "tests/torch/python_oracle.hpp"

namespace bench::training {
namespace {

ModelSpec named(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  return spec;
}

bool same_values(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || !torch::equal(a[i].tensor, b[i].tensor)) return false;
  }
  return true;
}

TEST(Zoo, TablesAgree) {
  ASSERT_EQ(zoo().size(), model_catalog().size());
  for (std::size_t i = 0; i < zoo().size(); ++i) {
    const ModelEntry& entry = model_catalog()[i];
    EXPECT_EQ(zoo()[i].name, entry.name);
    for (const Scale scale : {Scale::full, Scale::twin}) {
      const auto model = make_model(named(std::string(entry.name)), 1, scale, Init::none);
      EXPECT_EQ(model->input_shape,
                scale == Scale::full ? entry.input_shape : entry.twin_input_shape);
      std::int64_t count = 0;
      for (const NamedTensor& p : model->parameters()) count += p.tensor.numel();
      if (scale == Scale::full) {
        EXPECT_EQ(count, entry.parameter_count) << entry.name;
      }
    }
  }
}

TEST(Zoo, StructureIsTorchvisions) {
  const nlohmann::json oracle = read_oracle("models.json");
  for (const ModelEntry& entry : model_catalog()) {
    ASSERT_TRUE(oracle.contains(entry.name)) << entry.name;
    const nlohmann::json& expected = oracle[std::string(entry.name)];
    const auto model = make_model(named(std::string(entry.name)), 1, Scale::full, Init::none);
    EXPECT_EQ(described(model->parameters()), described(expected["parameters"])) << entry.name;
    EXPECT_EQ(described(model->buffers()), described(expected["buffers"])) << entry.name;
    EXPECT_EQ(model->module_count(), expected["modules"]) << entry.name;
    EXPECT_EQ(entry.parameter_count, expected["parameter_count"]) << entry.name;
  }
}

// As model_oracle.py's fill().
void fill(const Model& model) {
  torch::NoGradGuard no_grad;
  std::uint64_t seed = 0;
  for (const NamedTensor& p : model.parameters()) {
    torch::Tensor draw = seeded_normal(p.tensor.sizes(), seed++);
    if (p.tensor.dim() > 1) {
      draw *= std::sqrt(2.0 / static_cast<double>(p.tensor[0].numel()));
    } else {
      draw = draw * 0.1 + (p.name.ends_with("weight") ? 1.0 : 0.0);
    }
    torch::Tensor(p.tensor).copy_(draw);
  }
}

TEST(Zoo, TrainingStepIsPythons) {
  const nlohmann::json oracle = read_oracle("models.json");
  int compared = 0;
  for (const auto& [name, entry] : oracle.items()) {
    if (!entry.contains("step")) continue;
    SCOPED_TRACE(name);
    // A ResNet's twin is narrower than torchvision builds them: its full size, on the twin's
    // images.
    const bool resnet = name.starts_with("resne");
    ModelSpec spec = named(name);
    if (resnet) spec.input_shape = {3, 64, 64};
    const auto model = make_model(spec, 1, resnet ? Scale::full : Scale::twin, Init::none);
    fill(*model);
    const std::vector<std::int64_t> sizes = with_batch(4, model->input_shape);
    if (model->input_dtype == torch::kInt64) {
      const torch::Tensor ids = torch::arange(4 * sizes[1]).reshape(sizes) * 7 % 512;
      expect_same_step(*model, entry["step"], ids, (ids + 1) % 512);
    } else {
      const torch::Tensor input = seeded_normal(sizes, 500);
      expect_same_step(*model, entry["step"], input, torch::arange(4) * 3 % 1000);
    }
    ++compared;
  }
  EXPECT_GE(compared, 7);
}

TEST(Zoo, SeedDecidesEveryBit) {
  const auto a = make_model(named("resnet18"), 7);
  torch::manual_seed(99);  // the global generator must not matter
  torch::set_num_threads(1);
  const auto b = make_model(named("resnet18"), 7);
  EXPECT_TRUE(same_values(a->parameters(), b->parameters()));
  const auto other = make_model(named("resnet18"), 8);
  EXPECT_FALSE(same_values(a->parameters(), other->parameters()));
}

TEST(Zoo, DistributionsAreTorchvisions) {
  const auto model = make_model(named("resnet18"), 3);
  for (const NamedTensor& p : model->parameters()) {
    if (p.name == "layer4.1.conv2.weight") {
      EXPECT_NEAR(p.tensor.std().item<double>(), std::sqrt(2.0 / (512 * 9)), 1e-4);
      EXPECT_NEAR(p.tensor.mean().item<double>(), 0, 1e-4);
    }
    if (p.name == "fc.weight") {
      EXPECT_NEAR(p.tensor.abs().max().item<double>(), 1 / std::sqrt(512.0), 1e-5);
      EXPECT_NEAR(p.tensor.std().item<double>(), 1 / std::sqrt(3 * 512.0), 1e-4);
    }
    if (p.name == "layer1.0.bn1.weight") {
      EXPECT_TRUE(p.tensor.eq(1).all().item<bool>());
    }
  }
}

TEST(Zoo, ShellHasTheValuesAndTensorsOfItsOwn) {
  const auto model = make_model(named("resnet18"), 1, Scale::twin);
  const auto shell = model->shell();
  EXPECT_TRUE(same_values(model->parameters(), shell->parameters()));
  EXPECT_TRUE(same_values(model->buffers(), shell->buffers()));
  EXPECT_EQ(shell->output_shape, model->output_shape);
  torch::NoGradGuard no_grad;
  shell->parameters()[0].tensor.zero_();
  EXPECT_FALSE(same_values(model->parameters(), shell->parameters()));
}

TEST(Zoo, DropoutCanBeSwitchedOff) {
  ModelSpec spec = named("mobilenet_v2");
  spec.input_shape = {3, 32, 32};
  const auto model = make_model(spec, 1);
  const torch::Tensor input = seeded_normal({8, 3, 32, 32}, 1);
  EXPECT_FALSE(torch::equal(model->forward(input), model->forward(input)));
  model->disable_dropout();
  model->train(true);
  EXPECT_TRUE(torch::equal(model->forward(input), model->forward(input)));
  EXPECT_TRUE(torch::equal(model->forward(input), model->shell()->forward(input)));
}

TEST(Zoo, RebindingAHandleMovesTheModel) {
  const auto model = make_model(named("mlp"), 1, Scale::twin);
  torch::NoGradGuard no_grad;
  for (const NamedTensor& p : model->parameters()) {
    const torch::Tensor zeros = torch::zeros_like(p.tensor);
    p.tensor.unsafeGetTensorImpl()->shallow_copy_from(zeros.getIntrusivePtr());
  }
  EXPECT_EQ(model->forward(torch::ones({2, 1280})).abs().sum().item<float>(), 0);
}

TEST(Zoo, NetworksAreCloneable) {
  const auto model = make_model(named("resnet18"), 1, Scale::twin);
  const auto clone = std::dynamic_pointer_cast<Network>(model->torch_module()->clone());
  ASSERT_TRUE(clone);
  const torch::Tensor input = seeded_normal({2, 3, 64, 64}, 1);
  EXPECT_TRUE(torch::equal(clone->forward(input), model->forward(input)));
  clone->eval();
  EXPECT_FALSE(torch::equal(clone->forward(input), model->forward(input)));
}

// data_parallel() itself wants CUDA; the parts it is made of run between CPU "devices" as well.
TEST(Zoo, LibTorchDataParallelRunsNetworks) {
  const auto model = make_model(named("resnet18"), 1, Scale::twin);
  model->torch_module()->eval();  // BatchNorm would see other batches in replicas
  const torch::Tensor input = seeded_normal({4, 3, 64, 64}, 1);
  const torch::Tensor expected = model->forward(input);
  const std::vector<torch::Device> devices{torch::kCPU, torch::kCPU};
  auto replicas = torch::nn::parallel::replicate(model->torch_module(), devices);
  const auto outputs = torch::nn::parallel::parallel_apply(
      replicas, {input.slice(0, 0, 2), input.slice(0, 2, 4)}, devices);
  const torch::Tensor output = torch::cat({outputs[0], outputs[1]});
  EXPECT_TRUE(torch::allclose(output, expected, 1e-4, 1e-5));
  output.sum().backward();
  for (const NamedTensor& p : model->parameters()) {
    ASSERT_TRUE(p.tensor.grad().defined()) << p.name;
  }
}

TEST(Zoo, BadNamesAndShapesAreExplained) {
  const auto message = [](const ModelSpec& spec) {
    try {
      make_model(spec, 1);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message(named("resnet51")).find("did you mean resnet50"), std::string::npos);
  ModelSpec spec = named("resnet18");
  spec.input_shape = {1, 28, 28};
  EXPECT_EQ(message(spec),
            "--input 1x28x28: model resnet18 takes samples of 3x224x224 or another height and "
            "width");
  spec.input_shape = {3, 96, 32};
  EXPECT_EQ(make_model(spec, 1)->input_shape, (std::vector<std::int64_t>{3, 96, 32}));
  EXPECT_EQ(make_model(spec, 1, Scale::twin)->input_shape, (std::vector<std::int64_t>{3, 64, 32}));
}

}  // namespace
}  // namespace bench::training
