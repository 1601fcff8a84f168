// DistributedDataParallel against the single-device run on the same global batch, under every
// option it has, on the CPU and on virtual GPUs.
#include "bench/core/strategy.hpp"

#include "training/strategies/distributed.hpp"

#include <gtest/gtest.h>

#include "tests/torch/strategy_harness.hpp"

namespace bench::training {
namespace {

struct OptionCase {
  const char* name;
  DdpOptions ddp;
};

DdpOptions ddp_options(bool unused, bool fixed, bool views, std::optional<double> cap = {},
                       bool buffers = true) {
  DdpOptions ddp;
  ddp.find_unused_parameters = unused;
  ddp.static_graph = fixed;
  ddp.gradient_as_bucket_view = views;
  ddp.bucket_cap_mb = cap;
  ddp.broadcast_buffers = buffers;
  return ddp;
}

const std::vector<OptionCase> kDdpOptions = {
    {"defaults", ddp_options(false, false, false)},
    {"find_unused", ddp_options(true, false, false)},
    {"static_graph", ddp_options(false, true, false)},
    {"bucket_view", ddp_options(false, false, true)},
    {"static_graph_bucket_view", ddp_options(false, true, true)},
    {"find_unused_bucket_view", ddp_options(true, false, true)},
    {"small_buckets", ddp_options(false, false, false, 0.1)},
    {"no_buffer_broadcast", ddp_options(false, false, false, {}, false)},
};

class DistributedOption : public testing::TestWithParam<OptionCase> {};

TEST_P(DistributedOption, LinearModelTrainsLikeOneDevice) {
  auto work = twin_case("mlp", Strategy::distributed, 2, 8, DeviceKind::cpu);
  work.ddp = GetParam().ddp;
  const auto apart = difference(train(work, kSteps), train_reference(work, kSteps, {}));
  EXPECT_LT(apart.loss, kLinearTolerance);
  EXPECT_LT(apart.parameter, kLinearTolerance);
}

INSTANTIATE_TEST_SUITE_P(Strategy, DistributedOption, testing::ValuesIn(kDdpOptions),
                         [](const auto& info) { return info.param.name; });

// One run answers three questions, because a convolutional step is the slow part of this test.
TEST(Distributed, BatchNormModelTrainsLikeOneDeviceInChunksAndKeepsRankZerosBuffers) {
  auto work = twin_case("resnet18", Strategy::distributed, 2, 8, DeviceKind::cpu);
  work.ddp = ddp_options(true, false, true, 5);
  const auto run = train(work, 2);
  const auto reference = train_reference(work, 2, {4, 4});
  const auto apart = difference(run, reference);
  EXPECT_LT(apart.loss, kBatchNormTolerance);
  EXPECT_LT(apart.parameter, kBatchNormTolerance);
  ASSERT_FALSE(run.buffers.empty());
  for (std::size_t i = 0; i < run.buffers.size(); ++i) {
    EXPECT_TRUE(torch::allclose(run.buffers[i], reference.buffers[i], 1e-5, 1e-6))
        << "buffer " << i;
  }
}

TEST(Distributed, UnevenSlicesCountBySample) {
  const auto work = twin_case("mlp", Strategy::distributed, 3, 8, DeviceKind::cpu);
  const auto apart = difference(train(work, kSteps), train_reference(work, kSteps, {}));
  EXPECT_LT(apart.loss, kLinearTolerance);
  EXPECT_LT(apart.parameter, kLinearTolerance);
}

class Accumulation : public testing::TestWithParam<bool> {};

TEST_P(Accumulation, EqualsOneLargeBatch) {
  auto work = twin_case("mlp", Strategy::distributed, 2, 12, DeviceKind::cpu);
  work.accumulation = 3;
  work.no_sync = GetParam();
  work.ddp.gradient_as_bucket_view = true;
  const auto apart = difference(train(work, kSteps), train_reference(work, kSteps, {}));
  EXPECT_LT(apart.loss, kLinearTolerance);
  EXPECT_LT(apart.parameter, kLinearTolerance);
}

INSTANTIATE_TEST_SUITE_P(Strategy, Accumulation, testing::Bool(),
                         [](const auto& info) { return info.param ? "no_sync" : "every_time"; });

TEST(Distributed, AdamTrainsLikeOneDevice) {
  auto work = twin_case("mlp", Strategy::distributed, 2, 8, DeviceKind::cpu);
  work.optimizer = {"adam", 0.001, 0};
  const auto apart = difference(train(work, kSteps), train_reference(work, kSteps, {}));
  // Adam divides by the root of a squared gradient: rounding of tiny gradients becomes visible.
  EXPECT_LT(apart.loss, 1e-4);
  EXPECT_LT(apart.parameter, 1e-4);
}

// A model whose second layer is never called.
class HalfUsed final : public Model {
 public:
  HalfUsed() {
    input_shape = {4};
    output_shape = {4};
    loss_kind = LossKind::mse;
  }
  torch::Tensor forward(const torch::Tensor& input) override { return used_->forward(input); }
  std::vector<NamedTensor> parameters() const override {
    return {{"used.weight", used_->weight}, {"idle.weight", idle_->weight}};
  }
  std::vector<NamedTensor> buffers() const override { return {}; }
  void train(bool) override {}
  void disable_dropout() override {}
  std::unique_ptr<Model> shell() const override { return std::make_unique<HalfUsed>(); }
  std::int64_t module_count() const override { return 2; }

 private:
  torch::nn::Linear used_{torch::nn::LinearOptions(4, 4).bias(false)};
  torch::nn::Linear idle_{torch::nn::LinearOptions(4, 4).bias(false)};
};

// Two steps of a model with an unused parameter; the text of the error they end with.
std::string unused_parameter_error(const DdpOptions& ddp) {
  std::string message;
  try {
    on_every_rank(twin_case("half_used", Strategy::distributed, 2, 2, DeviceKind::cpu),
                  [&](int, Placement placement) {
                    HalfUsed model;
                    IgnorePhases ignore;
                    Distributed strategy(model, placement.group, ddp);
                    for (int step = 0; step < 2; ++step) {
                      strategy.forward(torch::ones({1, 4}), true, ignore).sum().backward();
                    }
                  });
  } catch (const std::exception& error) {
    message = error.what();
  }
  return message;
}

TEST(Distributed, UnusedParametersRaisePyTorchsErrorWithTheirNames) {
  const auto message = unused_parameter_error({});
  EXPECT_NE(message.find("Expected to have finished reduction in the prior iteration"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("idle.weight"), std::string::npos) << message;
}

TEST(Distributed, FindUnusedParametersTakesThem) {
  EXPECT_EQ(unused_parameter_error(ddp_options(true, false, false)), "");
}

}  // namespace
}  // namespace bench::training
