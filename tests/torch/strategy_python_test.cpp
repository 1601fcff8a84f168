// The distributed strategy against Python's DistributedDataParallel: the same losses step by step
// on the same weights and batches, and the same buckets.
#include "bench/core/strategy.hpp"

#include "training/strategies/distributed.hpp"
#include "training/strategies/optimizer.hpp"

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <gtest/gtest.h>

#include "tests/torch/python_oracle.hpp"
#include "tests/torch/strategy_harness.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kBatch = 8;
constexpr int kOracleSteps = 10;

// As model_oracle.py's fill().
void fill_like_python(const Model& model) {
  const torch::NoGradGuard no_grad;
  std::uint64_t seed = 0;
  for (const auto& parameter : model.parameters()) {
    auto draw = seeded_normal(parameter.tensor.sizes(), seed++);
    if (parameter.tensor.dim() > 1) {
      draw *= std::sqrt(2.0 / static_cast<double>(parameter.tensor[0].numel()));
    } else {
      draw = draw * 0.1 + (parameter.name.ends_with("weight") ? 1.0 : 0.0);
    }
    torch::Tensor(parameter.tensor).copy_(draw);
  }
}

at::Tensor oracle_target(const Model& model, int step) {
  if (model.loss_kind == LossKind::mse) {
    return seeded_normal(with_batch(kBatch, model.output_shape), 900 + step);
  }
  return torch::arange(kBatch) * 3 % model.target_classes;
}

// Python's ResNet-18 has its full width, on small images; the linear layer is the twin's.
std::unique_ptr<Model> same_as_python(ModelSpec choice) {
  if (choice.name == "mlp") return make_model(choice, 1, Scale::twin);
  choice.input_shape = {3, 64, 64};
  return make_model(choice, 1, Scale::full);
}

// Losses of one rank.
std::vector<double> ten_steps(const Case& work, int rank, const Placement& placement) {
  const auto model = same_as_python(work.model);
  fill_like_python(*model);
  model->train(true);
  Distributed strategy(*model, placement.group, work.ddp);
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : model->parameters()) parameters.push_back(parameter.tensor);
  const auto optimizer = make_optimizer(work.optimizer, parameters);
  const auto slice = rank_slice(kBatch, rank, work.world_size());
  IgnorePhases ignore;
  std::vector<double> losses;
  for (int step = 0; step < kOracleSteps; ++step) {
    const auto input = seeded_normal(with_batch(kBatch, model->input_shape), 500 + step);
    const auto part = [&](const at::Tensor& all) {
      return all.narrow(0, slice.begin, slice.count);
    };
    for (auto& parameter : parameters) parameter.mutable_grad().reset();
    const auto output = strategy.forward(part(input), true, ignore);
    const auto loss = model_loss(model->loss_kind, output, part(oracle_target(*model, step)));
    loss.backward();
    optimizer->step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

class PythonLosses : public testing::TestWithParam<const char*> {};

TEST_P(PythonLosses, TenStepsAreThoseOfPythonsDistributedDataParallel) {
  const auto expected = read_oracle("ddp.json")["losses"][GetParam()];
  const auto work = twin_case(GetParam(), Strategy::distributed, 2, kBatch, DeviceKind::cpu);
  std::vector<std::vector<double>> losses(2);
  on_every_rank(work, [&](int rank, Placement placement) {
    losses[static_cast<std::size_t>(rank)] = ten_steps(work, rank, placement);
  });
  for (std::size_t rank = 0; rank < losses.size(); ++rank) {
    for (std::size_t step = 0; step < losses[rank].size(); ++step) {
      const double python = expected[rank][step];
      EXPECT_NEAR(losses[rank][step], python, 1e-6 * std::abs(python))
          << "rank " << rank << " step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategy, PythonLosses, testing::Values("mlp", "resnet18"),
                         [](const auto& info) { return info.param; });

// Sixteen Linear(1024, 1024).
class LinearStack final : public Model {
 public:
  LinearStack() {
    for (int i = 0; i < 16; ++i) layers_->push_back(torch::nn::Linear(1024, 1024));
  }
  torch::Tensor forward(const torch::Tensor& input) override { return layers_->forward(input); }
  std::vector<NamedTensor> parameters() const override {
    std::vector<NamedTensor> named;
    for (const auto& item : layers_->named_parameters())
      named.push_back({item.key(), item.value()});
    return named;
  }
  std::vector<NamedTensor> buffers() const override { return {}; }
  void train(bool) override {}
  void disable_dropout() override {}
  std::unique_ptr<Model> shell() const override { return std::make_unique<LinearStack>(); }
  std::int64_t module_count() const override { return 16; }

 private:
  torch::nn::Sequential layers_;
};

struct BucketCase {
  const char* name;
  DdpOptions ddp;
  std::vector<std::int64_t> published;  // checked by hand once; empty where it was not
};

std::vector<BucketCase> bucket_cases() {
  std::vector<BucketCase> cases(5);
  cases[0] = {"default", {}, {4198400, 29388800, 29388800, 4198400}};
  cases[1] = {"cap_25", {}, {29388800, 29388800, 8396800}};
  cases[1].ddp.bucket_cap_mb = 25;
  cases[2] = {"cap_5", {}, {}};
  cases[2].ddp.bucket_cap_mb = 5;
  cases[3] = {"find_unused", {}, {4202496, 29388800, 29388800, 4194304}};
  cases[3].ddp.find_unused_parameters = true;
  cases[4] = {"static_graph", {}, {}};
  cases[4].ddp.static_graph = true;
  return cases;
}

class PythonBuckets : public testing::TestWithParam<BucketCase> {};

TEST_P(PythonBuckets, AreThoseOfPythonsDistributedDataParallel) {
  const auto oracle = read_oracle("ddp.json")["buckets"][GetParam().name];
  const auto first = oracle["bucket_sizes"].get<std::vector<std::int64_t>>();
  const auto rebuilt = oracle["rebuilt_bucket_sizes"].get<std::vector<std::int64_t>>();
  on_every_rank(twin_case("stack", Strategy::distributed, 1, 1, DeviceKind::cpu),
                [&](int, Placement placement) {
                  LinearStack model;
                  IgnorePhases ignore;
                  Distributed strategy(model, placement.group, GetParam().ddp);
                  EXPECT_EQ(strategy.bucket_bytes(), first);
                  for (int step = 0; step < 4; ++step) {
                    strategy.forward(torch::ones({1, 1024}), true, ignore).sum().backward();
                  }
                  EXPECT_EQ(strategy.bucket_bytes(), rebuilt.empty() ? first : rebuilt);
                  if (!GetParam().published.empty()) {
                    EXPECT_EQ(strategy.bucket_bytes(), GetParam().published);
                  }
                });
}

INSTANTIATE_TEST_SUITE_P(Strategy, PythonBuckets, testing::ValuesIn(bucket_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace bench::training
