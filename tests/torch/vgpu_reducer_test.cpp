// c10d::Reducer on virtual GPUs: two ranks over Gloo, symmetric ranks, PyTorch's own errors.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu_process_group.hpp"

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <torch/torch.h>

#include <gtest/gtest.h>

#include <thread>

#include "tests/torch/vgpu_networks.hpp"

namespace bench::training {
namespace {

constexpr int kWorld = 2;
constexpr std::size_t kBucketBytes = 4096;  // two buckets for the MLP

struct Ddp {
  std::vector<torch::Tensor> parameters;
  std::unique_ptr<c10d::Reducer> reducer;

  Ddp(std::vector<torch::Tensor> params, c10::intrusive_ptr<c10d::ProcessGroup> group,
      bool find_unused = false, bool bucket_view = false)
      : parameters(std::move(params)) {
    auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(parameters, {kBucketBytes});
    std::reverse(buckets.begin(), buckets.end());
    reducer = std::make_unique<c10d::Reducer>(
        parameters, buckets, std::move(group), std::vector<bool>(parameters.size(), false),
        kBucketBytes, find_unused, bucket_view, std::unordered_map<std::size_t, std::string>{},
        kBucketBytes, false, false, std::vector<std::int64_t>{});
  }

  // One step of plain SGD; `use_all` false leaves the last layer's bias out of the loss.
  double step(torch::nn::Sequential module, const torch::Tensor& input,
              const torch::Tensor& target) {
    reducer->prepare_for_forward();
    reducer->rebuild_buckets();
    const torch::Tensor loss = torch::cross_entropy_loss(module->forward(input), target);
    reducer->prepare_for_backward({loss});
    run_backward(loss);
    torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : parameters) {
      if (parameter.grad().defined()) parameter.add_(parameter.grad(), -0.1);
    }
    return loss.item<double>();
  }
};

void clear_gradients(std::vector<torch::Tensor>& parameters, bool keep_memory) {
  torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : parameters) {
    if (keep_memory && parameter.grad().defined()) {
      parameter.grad().zero_();
    } else {
      parameter.mutable_grad().reset();
    }
  }
}

struct Batch {
  torch::Tensor input, target;
};
Batch full_batch() {
  torch::manual_seed(3);
  return {torch::randn({16, 64}), torch::randint(10, {16})};
}

std::vector<torch::Tensor> train_two_ranks(bool bucket_view) {
  use_vgpu(Execute::numeric);
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const Batch batch = full_batch();
  std::vector<std::vector<torch::Tensor>> results(kWorld);
  std::vector<Network> networks{make_mlp(), make_mlp()};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kWorld; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto group = make_process_group(store, rank, kWorld);
      torch::nn::Sequential module = networks[rank].module;
      move_to_vgpu(*module, rank);
      Ddp ddp(module->parameters(), group, false, bucket_view);
      const torch::Tensor input = to_vgpu(batch.input.slice(0, rank * 8, rank * 8 + 8), rank);
      const torch::Tensor target = to_vgpu(batch.target.slice(0, rank * 8, rank * 8 + 8), rank);
      for (int i = 0; i < 4; ++i) {
        ddp.step(module, input, target);
        clear_gradients(ddp.parameters, bucket_view);
      }
      for (const auto& parameter : ddp.parameters) {
        results[rank].push_back(parameter.detach().cpu().clone());
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_TRUE(torch::equal(results[0][i], results[1][i])) << "ranks differ in parameter " << i;
  }
  return results[0];
}

std::vector<torch::Tensor> train_single() {
  // The autograd engine makes its device queues at the first backward pass of the process.
  use_vgpu(Execute::numeric);
  const Batch batch = full_batch();
  Network network = make_mlp();
  torch::nn::Sequential module = network.module;
  std::vector<torch::Tensor> parameters = module->parameters();
  for (int i = 0; i < 4; ++i) {
    torch::cross_entropy_loss(module->forward(batch.input), batch.target).backward();
    torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : parameters) parameter.add_(parameter.grad(), -0.1);
    clear_gradients(parameters, false);
  }
  return parameters;
}

void expect_close(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    // Two half sums are rounded differently from one whole: a few units in the last place.
    EXPECT_TRUE(torch::allclose(a[i], b[i], 1e-5, 1e-6)) << "parameter " << i;
  }
}

TEST(VgpuReducer, TwoRanksAgreeWithASingleDevice) {
  expect_close(train_two_ranks(false), train_single());
}
TEST(VgpuReducer, GradientsAsBucketViewsAgreeWithASingleDevice) {
  expect_close(train_two_ranks(true), train_single());
}

// A module whose first layer is skipped: its parameters are unused.
torch::Tensor second_layer_only(torch::nn::Sequential module, const torch::Tensor& input) {
  return module->ptr(2)->as<torch::nn::Linear>()->forward(input);
}

std::string unused_parameter_error(Execute execute) {
  use_vgpu(execute);
  Network network = make_mlp();
  torch::nn::Sequential module = network.module;
  move_to_vgpu(*module, 0);
  const auto group = make_process_group({}, 0, kWorld, {VgpuTransport::symmetric});
  Ddp ddp(module->parameters(), group);
  const torch::Tensor input = to_vgpu(torch::ones({64, 96}), 0);
  try {
    for (int i = 0; i < 2; ++i) {
      ddp.reducer->prepare_for_forward();
      ddp.reducer->rebuild_buckets();
      const torch::Tensor loss = second_layer_only(module, input).sum();
      ddp.reducer->prepare_for_backward({loss});
      run_backward(loss);
    }
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(VgpuReducer, UnusedParametersRaisePyTorchsError) {
  for (const Execute execute : {Execute::numeric, Execute::shape}) {
    const std::string error = unused_parameter_error(execute);
    EXPECT_NE(error.find("Expected to have finished reduction in the prior iteration before "
                         "starting a new one."),
              std::string::npos)
        << error;
    EXPECT_NE(error.find("Parameter indices which did not receive grad for rank 0: 0 1"),
              std::string::npos)
        << error;
  }
  use_vgpu(Execute::numeric);
}

struct SymmetricRun {
  simulator::OperationGraph graph;
  std::uint64_t peak = 0;
};
SymmetricRun record_symmetric(Execute execute, bool find_unused) {
  use_vgpu(execute);
  Network network = make_mlp();
  torch::nn::Sequential module = network.module;
  move_to_vgpu(*module, 0);
  const auto group = make_process_group({}, 0, 4, {VgpuTransport::symmetric});
  Ddp ddp(module->parameters(), group, find_unused);
  const Batch batch = full_batch();
  const torch::Tensor input = to_vgpu(batch.input, 0);
  const torch::Tensor target = to_vgpu(batch.target, 0);
  for (int i = 0; i < 3; ++i) {
    ddp.step(module, input, target);
    clear_gradients(ddp.parameters, false);
  }
  reset_peak(0);
  start_recording();
  ddp.step(module, input, target);
  SymmetricRun run{stop_recording(), peak_bytes(0)};
  return run;
}

TEST(VgpuReducer, ShapeExecutionRecordsTheBucketsOfNumericExecution) {
  for (const bool find_unused : {false, true}) {
    const SymmetricRun numeric = record_symmetric(Execute::numeric, find_unused);
    const SymmetricRun shape = record_symmetric(Execute::shape, find_unused);
    std::uint64_t payload = 0;
    std::size_t buckets = 0;
    for (const simulator::Operation& op : shape.graph.operations) {
      if (op.kind != simulator::OpKind::collective) continue;
      EXPECT_TRUE(op.across_ranks);
      EXPECT_EQ(op.stream, kCommunicationStream);
      if (op.dtype == simulator::DType::float32) payload += op.bytes_moved;
      ++buckets;
    }
    const std::uint64_t parameters = (64 * 96 + 96 + 96 * 10 + 10) * 4;
    EXPECT_EQ(payload, parameters);
    EXPECT_GE(buckets, 2u);
    EXPECT_EQ(numeric.peak, shape.peak);
    EXPECT_EQ(numeric.graph.operations.size(), shape.graph.operations.size());
  }
  use_vgpu(Execute::numeric);
}

TEST(VgpuProcessGroup, SymmetricRanksSumSmallTensors) {
  use_vgpu(Execute::shape);
  {
    const auto group = make_process_group({}, 0, 4, {VgpuTransport::symmetric});
    std::vector<torch::Tensor> used{to_vgpu(torch::tensor({1, 0, 1}, torch::kInt), 0)};
    group->allreduce(used)->wait();
    EXPECT_TRUE(torch::equal(used[0].cpu(), torch::tensor({4, 0, 4}, torch::kInt)));
  }
  use_vgpu(Execute::numeric);
}

}  // namespace
}  // namespace bench::training
