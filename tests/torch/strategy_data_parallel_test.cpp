// Both DataParallels on virtual GPUs: chunks, groups of the coalesced collectives, and training
// against the single-device run.
#include "bench/core/strategy.hpp"

#include "training/devices/vgpu.hpp"
#include "training/strategies/coalesced.hpp"
#include "training/strategies/replicas.hpp"

#include <gtest/gtest.h>

#include "tests/torch/strategy_harness.hpp"

namespace bench::training {
namespace {

std::vector<std::int64_t> chunk_sizes(std::int64_t batch, int devices) {
  const std::vector<at::Device> all(static_cast<std::size_t>(devices), at::kCPU);
  std::vector<std::int64_t> sizes;
  for (const auto& chunk : scatter(torch::zeros({batch, 3}), all)) sizes.push_back(chunk.size(0));
  return sizes;
}

TEST(Scatter, ChunksAreCeilingSizedAndMayBeFewerThanDevices) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(chunk_sizes(8, 4), (Sizes{2, 2, 2, 2}));
  EXPECT_EQ(chunk_sizes(6, 4), (Sizes{2, 2, 2}));
  EXPECT_EQ(chunk_sizes(9, 8), (Sizes{2, 2, 2, 2, 1}));
  EXPECT_EQ(chunk_sizes(1, 4), (Sizes{1}));
}

TEST(ReductionGroups, CloseBeforeTheLimitAndPerType) {
  const auto floats = [](std::int64_t count) { return torch::zeros({count}); };
  using Groups = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(reduction_groups({floats(2), floats(2), floats(2)}, 16), (Groups{{0, 1}, {2}}));
  EXPECT_EQ(reduction_groups({floats(9), floats(1)}, 16), (Groups{{0}, {1}}));
  EXPECT_EQ(reduction_groups({floats(2), torch::zeros({2}, torch::kInt64), floats(2)}, 16),
            (Groups{{0, 2}, {1}}));
}

TEST(Coalesced, ReduceAddsWhatBroadcastCopied) {
  register_vgpu({8, Execute::numeric, 0});
  const std::vector<at::Device> devices{vgpu_device(0), vgpu_device(1), vgpu_device(2)};
  std::vector<at::Tensor> originals;
  for (const std::int64_t size : {3, 1 << 20, 5, 3 << 20, 7}) {
    originals.push_back(to_vgpu(torch::full({size}, static_cast<float>(size % 11)), 0));
  }
  const auto grid = broadcast_coalesced(originals, devices);
  ASSERT_EQ(grid.size(), 3U);
  EXPECT_EQ(grid[2][1].device(), devices[2]);
  const auto sums = reduce_add_coalesced(grid);
  for (std::size_t i = 0; i < originals.size(); ++i) {
    EXPECT_EQ(sums[i].device(), devices[0]);
    EXPECT_TRUE(torch::equal(sums[i].to(at::kCPU), 3 * originals[i].to(at::kCPU)))
        << "tensor " << i;
  }
}

std::uint64_t bytes_in_use(int devices) {
  std::uint64_t bytes = 0;
  for (int device = 0; device < devices; ++device) bytes += current_bytes(device);
  return bytes;
}

class BothDataParallels : public testing::TestWithParam<Strategy> {};

TEST_P(BothDataParallels, LinearModelTrainsLikeOneDevice) {
  const auto work = twin_case("mlp", GetParam(), 4, 8);
  const auto apart = difference(train(work, kSteps), train_reference(work, kSteps, {}));
  EXPECT_LT(apart.loss, kLinearTolerance);
  EXPECT_LT(apart.parameter, kLinearTolerance);
}

TEST_P(BothDataParallels, ShortBatchLeavesDevicesIdle) {
  const auto work = twin_case("mlp", GetParam(), 4, 6);
  const auto apart = difference(train(work, kSteps), train_reference(work, kSteps, {2, 2, 2}));
  EXPECT_LT(apart.loss, kLinearTolerance);
  EXPECT_LT(apart.parameter, kLinearTolerance);
}

// A forward pass for its output alone, as in evaluation, or a step that failed before its backward.
TEST_P(BothDataParallels, ForwardWithoutBackwardLeavesNoMemoryBehind) {
  register_vgpu({8, Execute::numeric, 0});
  const auto before = bytes_in_use(2);
  {
    Trainer trainer(twin_case("mlp", GetParam(), 2, 4), {{vgpu_device(0), vgpu_device(1)}});
    const auto input = to_vgpu(torch::zeros({4, trainer.parameters()[0].size(1)}), 0);
    IgnorePhases ignore;
    const auto output = trainer.parallelism().forward(input, true, ignore);
    ASSERT_EQ(output.size(0), 4);
    ASSERT_GT(bytes_in_use(2), before);
  }
  EXPECT_EQ(bytes_in_use(2), before);
}

TEST_P(BothDataParallels, BatchNormModelTrainsLikeOneDeviceInChunks) {
  const auto work = twin_case("resnet18", GetParam(), 2, 8);
  const auto run = train(work, 2);
  const auto reference = train_reference(work, 2, {4, 4});
  const auto apart = difference(run, reference);
  EXPECT_LT(apart.loss, kBatchNormTolerance);
  EXPECT_LT(apart.parameter, kBatchNormTolerance);
  // Under Python's DataParallel, replica 0 shares its BatchNorm statistics with the model, which so
  // follow the first chunk. LibTorch's clones keep theirs to themselves: the model's never move.
  const auto untouched = train_reference(work, 0, {});
  const auto& expected = GetParam() == Strategy::data_parallel ? reference : untouched;
  ASSERT_FALSE(run.buffers.empty());
  for (std::size_t i = 0; i < run.buffers.size(); ++i) {
    EXPECT_TRUE(torch::allclose(run.buffers[i], expected.buffers[i], 1e-4, 1e-5)) << "buffer " << i;
  }
}

TEST_P(BothDataParallels, AccumulationEqualsOneLargeBatch) {
  auto work = twin_case("mlp", GetParam(), 2, 8);
  work.accumulation = 2;
  const auto apart = difference(train(work, kSteps), train_reference(work, kSteps, {}));
  EXPECT_LT(apart.loss, kLinearTolerance);
  EXPECT_LT(apart.parameter, kLinearTolerance);
}

TEST_P(BothDataParallels, OneDeviceIsPlainTraining) {
  const auto work = twin_case("mlp", GetParam(), 1, 4);
  const auto apart = difference(train(work, kSteps), train_reference(work, kSteps, {}));
  EXPECT_EQ(apart.loss, 0);
  EXPECT_EQ(apart.parameter, 0);
}

INSTANTIATE_TEST_SUITE_P(Strategy, BothDataParallels,
                         testing::Values(Strategy::data_parallel, Strategy::libtorch_data_parallel),
                         [](const auto& info) { return strategy_name(info.param); });

}  // namespace
}  // namespace bench::training
