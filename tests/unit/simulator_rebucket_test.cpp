// Buckets as an edit of a recording: the Reducer's assignment, and what is moved in the graph.
#include "simulator/graph_io.hpp"
#include "simulator/rebucket.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace bench::simulator {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::vector<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& gradients,
                                    const BucketCaps& caps) {
  std::vector<std::uint64_t> buckets;
  std::size_t at = 0;
  for (const std::size_t count : assign_buckets(gradients, caps)) {
    const auto first = gradients.begin() + static_cast<std::ptrdiff_t>(at);
    buckets.push_back(std::accumulate(first, first + static_cast<std::ptrdiff_t>(count), 0ULL));
    at += count;
  }
  return buckets;
}

// Sixteen Linear(1024, 1024): what PyTorch's own DDP logs as its rebuilt buckets.
TEST(AssignBuckets, AsTheReducerDoesWithItsOvershoot) {
  std::vector<std::uint64_t> gradients;
  for (int layer = 0; layer < 16; ++layer) {
    gradients.push_back(4096);
    gradients.push_back(4194304);
  }
  using Bytes = std::vector<std::uint64_t>;
  EXPECT_EQ(bytes_of(gradients, {}), (Bytes{4198400, 29388800, 29388800, 4198400}));
  EXPECT_EQ(bytes_of(gradients, {25 * kMiB, 25 * kMiB}), (Bytes{29388800, 29388800, 8396800}));
  EXPECT_EQ(bytes_of({5, 6}, {100, 100}), (Bytes{11}));
}

// Three gradients of 2 MiB that become ready one after another and are reduced at the end.
OperationGraph one_bucket() {
  OperationGraph graph;
  graph.strategy = "distributed";
  graph.world_size = 2;
  graph.names = {"", "aten::mul", "nccl::all_reduce", "aten::copy_", "aten::mm"};
  graph.host_threads = {"backward:0"};
  auto add = [&](std::uint32_t name, Phase phase, std::uint64_t bytes) -> Operation& {
    Operation op;
    op.name = name;
    op.phase = phase;
    op.device = 0;
    op.bytes_read = op.bytes_written = bytes;
    graph.operations.push_back(op);
    return graph.operations.back();
  };
  for (int i = 0; i < 3; ++i) {
    add(4, Phase::backward, 9 * kMiB);
    add(1, Phase::backward, 2 * kMiB);
  }
  Operation& reduction = add(2, Phase::reduce, 6 * kMiB);
  reduction.kind = OpKind::collective;
  reduction.collective = CollectiveKind::all_reduce;
  reduction.across_ranks = true;
  reduction.group = 1;
  reduction.stream = 1;
  reduction.bytes_moved = 6 * kMiB;
  reduction.device_deps = {5};
  for (int i = 0; i < 3; ++i) add(3, Phase::backward, 2 * kMiB).device_deps = {6};
  graph.allocations = {{0, MemoryCategory::buckets, 6 * kMiB, kNone, kNone},
                       {0, MemoryCategory::gradients, 6 * kMiB, 1, 9}};
  return graph;
}

TEST(WithBucketCaps, ReducesEachBucketAsSoonAsItIsFull) {
  const auto edited = with_bucket_caps(one_bucket(), {kMiB, 4 * kMiB});
  ASSERT_TRUE(edited.has_value());
  check_graph(*edited, "edited");
  const auto& ops = edited->operations;
  ASSERT_EQ(ops.size(), 11U);
  EXPECT_EQ(ops[2].kind, OpKind::collective) << "right behind the first gradient";
  EXPECT_EQ(ops[2].bytes_moved, 2 * kMiB);
  EXPECT_EQ(ops[7].bytes_moved, 4 * kMiB);
  EXPECT_NE(ops[2].group, ops[7].group);
  EXPECT_EQ(ops[2].device_deps, std::vector<std::uint32_t>{1});
  EXPECT_EQ(ops[8].device_deps, std::vector<std::uint32_t>{2});
  EXPECT_EQ(ops[9].device_deps, std::vector<std::uint32_t>{7});
  ASSERT_EQ(edited->allocations.size(), 3U);
  EXPECT_EQ(edited->allocations[0].free_op, 10);
  EXPECT_EQ(edited->allocations[1].bytes + edited->allocations[2].bytes, 6 * kMiB);
}

TEST(WithBucketCaps, TheSameCapsChangeNothingButTheGroup) {
  const OperationGraph graph = one_bucket();
  const auto edited = with_bucket_caps(graph, {100 * kMiB, 100 * kMiB});
  ASSERT_TRUE(edited.has_value());
  OperationGraph same = *edited;
  same.operations[6].group = graph.operations[6].group;
  std::swap(same.allocations[0], same.allocations[1]);
  EXPECT_EQ(encode_graph(same), encode_graph(graph));
}

TEST(WithBucketCaps, RefusesRecordingsThatDoNotShowTheWay) {
  OperationGraph view = one_bucket();
  view.names[3] = "aten::detach";  // gradients that are views of their bucket are not copied back
  EXPECT_FALSE(with_bucket_caps(view, {}).has_value());
  OperationGraph other = one_bucket();
  other.operations[3].bytes_written = 4;  // not the gradient that comes back
  EXPECT_FALSE(with_bucket_caps(other, {}).has_value());
  OperationGraph none = one_bucket();
  none.operations[6].across_ranks = false;
  EXPECT_FALSE(with_bucket_caps(none, {}).has_value());
}

}  // namespace
}  // namespace bench::simulator
