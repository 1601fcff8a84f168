// The recorder: the same graph from every recording, peaks equal to the allocator's, and shape
// execution equal to numeric execution.
#include "simulator/operation_graph.hpp"

#include "training/devices/recorder.hpp"

#include <torch/torch.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "tests/torch/vgpu_networks.hpp"

namespace bench::training {
namespace {

using simulator::kNone;
using simulator::Operation;
using simulator::OperationGraph;
using simulator::OpKind;

// Everything in a graph as text, so that a difference shows where it is.
std::string text_of(const OperationGraph& graph) {
  std::ostringstream text;
  for (const std::string& thread : graph.host_threads) text << thread << '\n';
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    const Operation& op = graph.operations[i];
    text << i << ' ' << graph.names[op.name] << ' ' << graph.names[op.shape] << " kind"
         << static_cast<int>(op.kind) << ' ' << phase_name(op.phase) << " d" << op.device << " s"
         << op.stream << " t" << op.host_thread << " p" << op.peer << " f" << op.flops << " r"
         << op.bytes_read << " w" << op.bytes_written << " m" << op.bytes_moved << " l"
         << op.launches << " g" << op.group << " dd";
    for (std::uint32_t dep : op.device_deps) text << ',' << dep;
    text << " id";
    for (std::uint32_t dep : op.issue_deps) text << ',' << dep;
    text << '\n';
  }
  for (const simulator::Allocation& a : graph.allocations) {
    text << 'd' << a.device << ' ' << memory_category_name(a.category) << ' ' << a.bytes << ' '
         << a.alloc_op << ' ' << a.free_op << '\n';
  }
  return text.str();
}

struct Recorded {
  OperationGraph graph;
  std::uint64_t peak = 0;
};

// Two warm-up steps (optimizer state, lazily made gradients), then one recorded step.
Recorded record_step(Network (*make)(), Execute execute) {
  use_vgpu(execute);
  Network network = make();
  torch::nn::Sequential module = network.module;
  move_to_vgpu(*module, 0);
  torch::optim::SGD optimizer(module->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  const torch::Tensor input = to_vgpu(torch::ones(network.input_shape), 0);
  const torch::Tensor target = to_vgpu(torch::zeros({network.input_shape[0]}, torch::kLong), 0);
  for (int i = 0; i < 2; ++i) training_step(network, optimizer, input, target);
  Recorded result;
  reset_peak(0);
  start_recording();
  training_step(network, optimizer, input, target);
  result.graph = stop_recording();
  result.peak = peak_bytes(0);
  return result;
}

void expect_faithful(Network (*make)()) {
  const Recorded first = record_step(make, Execute::numeric);
  const Recorded second = record_step(make, Execute::numeric);
  const Recorded shape = record_step(make, Execute::shape);
  EXPECT_EQ(text_of(first.graph), text_of(second.graph));
  EXPECT_EQ(text_of(first.graph), text_of(shape.graph));
  EXPECT_EQ(first.peak, first.graph.peak_memory(0).bytes);
  EXPECT_EQ(first.peak, shape.peak);
  EXPECT_GT(first.graph.operations.size(), 20u);
  use_vgpu(Execute::numeric);
}

TEST(VgpuRecording, OfAnMlpIsTheSameInEveryRunAndExecution) { expect_faithful(&make_mlp); }
TEST(VgpuRecording, OfAConvNetIsTheSameInEveryRunAndExecution) { expect_faithful(&make_conv_net); }

TEST(VgpuRecording, CountsTheArithmeticOfAnMlpStep) {
  const OperationGraph graph = record_step(&make_mlp, Execute::shape).graph;
  double products = 0;
  for (const Operation& op : graph.operations) {
    const std::string& name = graph.names[op.name];
    if (name == "aten::mm" || name == "aten::addmm") products += op.flops;
  }
  // Forward of both layers, weight gradients of both, input gradient of the second only.
  const double first = 2.0 * 16 * 64 * 96;
  const double second = 2.0 * 16 * 96 * 10;
  EXPECT_DOUBLE_EQ(products, 2 * first + 3 * second);
  use_vgpu(Execute::numeric);
}

TEST(VgpuRecording, NamesBackwardThreadsAndPhases) {
  const OperationGraph graph = record_step(&make_mlp, Execute::numeric).graph;
  ASSERT_EQ(graph.host_threads, (std::vector<std::string>{"main", "backward:0"}));
  bool forked = false;
  for (const Operation& op : graph.operations) {
    if (op.host_thread == 1) {
      EXPECT_EQ(op.phase, simulator::Phase::backward);
      EXPECT_TRUE(forked || !op.issue_deps.empty());
      forked = true;
    } else {
      EXPECT_NE(op.phase, simulator::Phase::other) << graph.names[op.name];
    }
  }
  EXPECT_TRUE(forked);
}

TEST(VgpuRecording, ThreadsOfReplicasMergeInCanonicalOrder) {
  use_vgpu(Execute::numeric);
  const auto record = [](int delayed) {
    std::vector<torch::Tensor> inputs;
    for (int d = 0; d < 3; ++d) inputs.push_back(to_vgpu(torch::ones({4, 4}), d));
    start_recording();
    const ForkPoint from = fork();
    std::vector<std::thread> threads;
    for (int d = 0; d < 3; ++d) {
      threads.emplace_back([&, d] {
        const HostThreadScope scope("replica:" + std::to_string(d), from);
        const PhaseScope phase(simulator::Phase::forward);
        if (d == delayed) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        inputs[d] = torch::mm(inputs[d], inputs[d]).relu();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int d = 0; d < 3; ++d) join("replica:" + std::to_string(d));
    const torch::Tensor there = inputs[1].to(vgpu_device(0));
    (inputs[0] + there).sum().item<float>();
    return text_of(stop_recording());
  };
  const std::string expected = record(0);
  EXPECT_EQ(expected, record(1));
  EXPECT_EQ(expected, record(2));
}

TEST(VgpuRecording, LabelsMemoryByCategory) {
  use_vgpu(Execute::numeric);
  start_recording();
  torch::Tensor a;
  {
    const CategoryScope scope(simulator::MemoryCategory::buckets);
    a = torch::zeros({1024}, torch::device(vgpu_device(0)));
  }
  const torch::Tensor b = a + 1;
  tag(b, simulator::MemoryCategory::gradients);
  const OperationGraph graph = stop_recording();
  const OperationGraph::Peak peak = graph.peak_memory(0);
  EXPECT_EQ(peak.by_category[static_cast<int>(simulator::MemoryCategory::buckets)], 4096u);
  EXPECT_EQ(peak.by_category[static_cast<int>(simulator::MemoryCategory::gradients)], 4096u);
  EXPECT_EQ(peak.bytes, 8192u);
}

TEST(VgpuShape, ReadingAValueGivesNan) {
  use_vgpu(Execute::shape);
  {
    const torch::Tensor a = to_vgpu(torch::ones({64, 64}), 0);
    EXPECT_FALSE(has_values(a));
    EXPECT_TRUE(std::isnan(a.sum().item<float>()));
    EXPECT_TRUE(std::isnan(a[0][0].item<float>()));
    const torch::Tensor small = to_vgpu(torch::ones({4}), 0);
    EXPECT_EQ((small + 1).sum().item<float>(), 8.0F);
  }
  use_vgpu(Execute::numeric);
}

}  // namespace
}  // namespace bench::training
