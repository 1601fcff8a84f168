// The batch as an edit of recordings at other batches.
#include "simulator/allocation_order.hpp"
#include "simulator/batch_edit.hpp"
#include "simulator/graph_io.hpp"

#include <gtest/gtest.h>

namespace bench::simulator {
namespace {

constexpr std::int64_t kParts = 6;  // devices times micro-batches
constexpr std::int64_t kStatisticsBytes = 700 * 40;

std::uint64_t in_blocks(std::int64_t bytes) {
  return static_cast<std::uint64_t>((bytes + 511) / 512 * 512);
}

Operation op_of(std::uint32_t name, Phase phase, std::vector<std::uint32_t> deps) {
  Operation op;
  op.name = name;
  op.phase = phase;
  op.device = 0;
  op.device_deps = std::move(deps);
  return op;
}

// A copy, a product and an update. The product's output and its statistics, which do not depend on
// the batch, are made and freed together: from 700 samples on the output is the larger of the two.
OperationGraph recorded(std::int64_t samples) {
  OperationGraph graph;
  graph.model = "layered";
  graph.strategy = "single";
  graph.global_batch = kParts * samples;
  graph.parameter_count = 640;
  graph.host_threads = {"main"};
  graph.names = {"", "copy", "product", "[" + std::to_string(samples) + ",64]x[64,10]", "update"};
  Operation copy = op_of(1, Phase::data, {});
  copy.kind = OpKind::copy;
  copy.peer = 0;
  copy.bytes_moved = static_cast<std::uint64_t>(samples * 256);
  Operation product = op_of(2, Phase::forward, {0});
  product.shape = 3;
  product.flops = static_cast<double>(samples * 2 * 640);
  product.bytes_read = static_cast<std::uint64_t>(samples * 256 + 2560);
  product.bytes_written = static_cast<std::uint64_t>(samples * 40);
  Operation update = op_of(4, Phase::optimizer, {1});
  update.flops = 640;
  graph.operations = {copy, product, update};
  graph.allocations = {
      {0, MemoryCategory::inputs, in_blocks(samples * 256), kNone, kNone},
      {0, MemoryCategory::parameters, in_blocks(2560), kNone, kNone},
      {0, MemoryCategory::activations, in_blocks(samples * 40), 1, 2},
      {0, MemoryCategory::activations, in_blocks(kStatisticsBytes), 1, 2},
  };
  sort_allocations(graph.allocations);
  return graph;
}

class Batches : public testing::Test {
 protected:
  std::optional<BatchSeries> series() const {
    return BatchSeries::make({{{2, &check_}, {512, &low_}, {1024, &high_}}});
  }
  OperationGraph check_ = recorded(2);
  OperationGraph low_ = recorded(512);
  OperationGraph high_ = recorded(1024);
};

TEST_F(Batches, AreRecordingsOfTheirOwn) {
  const auto series = this->series();
  ASSERT_TRUE(series.has_value());
  for (const std::int64_t samples : {2, 3, 17, 511, 512, 699, 701, 1024, 100'003}) {
    const auto graph = series->at(samples);
    ASSERT_TRUE(graph.has_value()) << samples;
    check_graph(*graph, "edited");
    EXPECT_EQ(encode_graph(*graph), encode_graph(recorded(samples))) << samples;
  }
}

TEST_F(Batches, OfOneSampleAreRecorded) {
  const auto series = this->series();
  ASSERT_TRUE(series.has_value());
  EXPECT_FALSE(series->at(1).has_value());
  EXPECT_FALSE(series->at(0).has_value());
}

TEST_F(Batches, OneShapeForTwoAtSomeBatchIsTwoAtOthers) {
  const auto with_square = [](OperationGraph graph) {  // [64,64]x[64,10] at 64 samples
    graph.names.push_back("[64,64]x[64,10]");
    graph.operations[2].shape = 5;
    return graph;
  };
  const auto square = [&](std::int64_t samples) {
    OperationGraph graph = with_square(recorded(samples));
    if (samples == 64) {
      graph.names.pop_back();
      graph.operations[2].shape = 3;
    }
    return graph;
  };
  check_ = square(2);
  low_ = square(512);
  high_ = square(1024);
  const auto series = this->series();
  ASSERT_TRUE(series.has_value());
  EXPECT_EQ(encode_graph(*series->at(64)), encode_graph(square(64)));
}

// Similarities between all samples: the third recording is not on the line of the other two.
TEST_F(Batches, RefuseWorkThatGrowsFaster) {
  for (OperationGraph* graph : {&check_, &low_, &high_}) {
    const auto samples = static_cast<double>(graph->global_batch / kParts);
    graph->operations[1].flops = 2 * 64 * samples * samples;
  }
  EXPECT_FALSE(series().has_value());
}

TEST_F(Batches, RefuseMemoryThatGrowsFaster) {
  for (OperationGraph* graph : {&check_, &low_, &high_}) {
    const std::int64_t samples = graph->global_batch / kParts;
    graph->allocations[0].bytes = in_blocks(samples * samples * 4);
  }
  EXPECT_FALSE(series().has_value());
}

TEST_F(Batches, RefuseAnotherWayAtASmallBatch) {
  check_.operations[1].launches = 2;
  EXPECT_FALSE(series().has_value());
  check_ = recorded(2);
  check_.operations[2].device_deps = {0};
  EXPECT_FALSE(series().has_value());
  check_ = recorded(2);
  check_.names[2] = "other";
  EXPECT_FALSE(series().has_value());
}

TEST_F(Batches, RefuseAnotherWayAtALargeBatch) {
  high_.operations.push_back(op_of(4, Phase::optimizer, {}));
  EXPECT_FALSE(series().has_value());
  high_ = recorded(1024);
  high_.names[3] = "[1024,8,8]x[64,10]";
  EXPECT_FALSE(series().has_value());
  high_ = recorded(1024);
  high_.allocations.back().free_op = kNone;
  EXPECT_FALSE(series().has_value());
}

}  // namespace
}  // namespace bench::simulator
