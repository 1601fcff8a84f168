// Micro-batches and DDP's broadcast of buffers as edits of a recording.
#include "simulator/accumulation_edit.hpp"
#include "simulator/buffer_edit.hpp"
#include "simulator/graph_io.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace bench::simulator {
namespace {

Operation op_of(std::uint32_t name, Phase phase) {
  Operation op;
  op.name = name;
  op.phase = phase;
  op.device = 0;
  return op;
}

// A broadcast of buffers, then forward and backward of `count` micro-batches, then the optimizer.
// The last micro-batch alone is reduced. Each waits for the one before it on the host, and its
// backward pass for the buffers of the first on the device; its activation lives until the next
// begins, and its loss until the next step.
OperationGraph recorded(int count) {
  OperationGraph graph;
  graph.strategy = "distributed";
  graph.world_size = 2;
  graph.global_batch = 8 * count;
  graph.names = {"", "buffers", "forward", "backward", "reduce", "optimizer"};
  graph.host_threads = {"main"};
  auto& ops = graph.operations;
  auto& memory = graph.allocations;
  ops.push_back(op_of(1, Phase::broadcast));
  memory.push_back({0, MemoryCategory::buckets, 1024, 0, 1});
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint32_t>(ops.size());
    ops.push_back(op_of(2, Phase::forward));
    if (i > 0) ops.back().issue_deps = {at - 1};
    ops.push_back(op_of(3, Phase::backward));
    ops.back().device_deps = {0};
    if (i + 1 == count) {
      ops.push_back(op_of(4, Phase::reduce));
      ops.back().group = 1;
      ops.back().device_deps = {at + 1};
    }
    memory.push_back({0, MemoryCategory::activations, 4096, at, at + (i + 1 == count ? 3 : 2)});
    memory.push_back({0, MemoryCategory::activations, 512, at, kNone});
    memory.push_back({0, MemoryCategory::activations, 512, kNone, 0});
    memory.push_back({0, MemoryCategory::inputs, 2048, kNone, kNone});
  }
  ops.push_back(op_of(5, Phase::optimizer));
  ops.back().issue_deps = {static_cast<std::uint32_t>(ops.size() - 2)};
  std::sort(memory.begin(), memory.end(), [](const Allocation& a, const Allocation& b) {
    return std::tie(a.alloc_op, a.free_op, a.device, a.category, a.bytes) <
           std::tie(b.alloc_op, b.free_op, b.device, b.category, b.bytes);
  });
  return graph;
}

TEST(WithMicroBatches, AnyNumberIsARecordingOfIt) {
  for (const int count : {2, 3, 4, 9}) {
    const auto edited = with_micro_batches(recorded(3), count);
    ASSERT_TRUE(edited.has_value()) << count;
    check_graph(*edited, "edited");
    EXPECT_EQ(encode_graph(*edited), encode_graph(recorded(count))) << count;
  }
}

TEST(WithMicroBatches, NeedsThreeToSeeTheOneInTheMiddle) {
  EXPECT_FALSE(with_micro_batches(recorded(2), 4).has_value());
  EXPECT_FALSE(with_micro_batches(recorded(4), 5).has_value());
  EXPECT_FALSE(with_micro_batches(recorded(3), 1).has_value());
}

// Indices in recorded(3): forward and backward are 1 and 2, 3 and 4, 5 and 6; the reduction is 7.
TEST(WithMicroBatches, RefusesWhatTheRecordingDoesNotExplain) {
  OperationGraph other_work = recorded(3);
  other_work.operations[5].flops = 1;
  EXPECT_FALSE(with_micro_batches(other_work, 4).has_value()) << "the last is another work";

  OperationGraph waits = recorded(3);
  waits.operations[8].device_deps = {4};
  EXPECT_FALSE(with_micro_batches(waits, 4).has_value()) << "the optimizer waits for the middle";
  EXPECT_FALSE(with_micro_batches(waits, 2).has_value());

  OperationGraph held = recorded(3);
  held.allocations.push_back({0, MemoryCategory::activations, 8192, 3, 7});
  EXPECT_FALSE(with_micro_batches(held, 4).has_value()) << "freed where the middle has nothing";

  OperationGraph left = recorded(3);
  left.allocations.push_back({0, MemoryCategory::other, 8192, 3, kNone});
  EXPECT_FALSE(with_micro_batches(left, 4).has_value()) << "left behind, and not found again";

  OperationGraph input = recorded(3);
  input.allocations.push_back({0, MemoryCategory::inputs, 8192, kNone, kNone});
  EXPECT_FALSE(with_micro_batches(input, 4).has_value()) << "an input of no micro-batch";
}

TEST(WithoutBufferBroadcasts, NothingIsLeftOfThem) {
  const OperationGraph graph = recorded(3);
  const OperationGraph edited = without_buffer_broadcasts(graph);
  check_graph(edited, "edited");
  ASSERT_EQ(edited.operations.size(), graph.operations.size() - 1);
  EXPECT_EQ(edited.operations.front().phase, Phase::forward);
  EXPECT_TRUE(edited.operations[1].device_deps.empty());
  EXPECT_EQ(edited.operations[2].issue_deps, std::vector<std::uint32_t>{1});
  for (const Allocation& a : edited.allocations) EXPECT_NE(a.category, MemoryCategory::buckets);
}

// What a broadcast waited for on the host is what the operation after it waits for.
TEST(WithoutBufferBroadcasts, TheHostWaitsAsBefore) {
  OperationGraph graph = recorded(2);
  Operation broadcast = op_of(1, Phase::broadcast);
  broadcast.issue_deps = {0};
  graph.operations.insert(graph.operations.begin() + 1, broadcast);
  graph.operations.front().phase = Phase::data;
  graph.operations.resize(4);
  graph.operations[2].issue_deps = {};
  graph.operations[3].device_deps = {1};
  graph.operations[3].issue_deps = {};
  graph.allocations = {{0, MemoryCategory::activations, 512, 0, 1}};
  const OperationGraph edited = without_buffer_broadcasts(graph);
  ASSERT_EQ(edited.operations.size(), 3U);
  EXPECT_EQ(edited.operations[1].issue_deps, std::vector<std::uint32_t>{0});
  EXPECT_TRUE(edited.operations[2].device_deps.empty());
  EXPECT_EQ(edited.allocations.at(0).free_op, 1);
}

}  // namespace
}  // namespace bench::simulator
