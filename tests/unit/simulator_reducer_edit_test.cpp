// Options of the Reducer as edits of a recording: its buckets, and what moves in the graph.
#include "simulator/graph_io.hpp"
#include "simulator/reducer_edit.hpp"

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
                       {0, MemoryCategory::activations, 6 * kMiB, 1, 9}};
  return graph;
}

TEST(WithReducerOptions, ReducesEachBucketAsSoonAsItIsFull) {
  const auto edited = with_reducer_options(one_bucket(), {.caps = {kMiB, 4 * kMiB}});
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
  EXPECT_EQ(edited->allocations[0].bytes + edited->allocations[1].bytes, 6 * kMiB);
  EXPECT_EQ(edited->allocations[2].free_op, 10);
}

TEST(WithReducerOptions, TheSameCapsChangeNothing) {
  const OperationGraph graph = one_bucket();
  const auto edited = with_reducer_options(graph, {.caps = {100 * kMiB, 100 * kMiB}});
  ASSERT_TRUE(edited.has_value());
  EXPECT_EQ(encode_graph(*edited), encode_graph(graph));
}

TEST(WithReducerOptions, RefusesRecordingsThatDoNotShowTheWay) {
  OperationGraph view = one_bucket();
  view.names[3] = "aten::detach";  // gradients that are views of their bucket are not copied back
  EXPECT_FALSE(with_reducer_options(view, {.caps = {}}).has_value());
  OperationGraph other = one_bucket();
  other.operations[3].bytes_written = 4;  // not the gradient that comes back
  EXPECT_FALSE(with_reducer_options(other, {.caps = {}}).has_value());
  OperationGraph none = one_bucket();
  none.operations[6].across_ranks = false;
  EXPECT_FALSE(with_reducer_options(none, {.caps = {}}).has_value());
}

// A forward pass whose output the loss reads, three gradients that become ready as parameters 2, 0
// and 1 in one bucket, and an optimizer that takes the parameters in their order.
OperationGraph step_with_optimizer() {
  OperationGraph graph = one_bucket();
  graph.host_threads = {"main", "backward:0"};
  const std::vector<Operation> backward = std::move(graph.operations);
  auto add = [&](Phase phase, std::vector<std::uint32_t> deps) {
    Operation op;
    op.name = 4;
    op.phase = phase;
    op.device = 0;
    op.bytes_read = op.bytes_written = kMiB;
    op.device_deps = std::move(deps);
    graph.operations.push_back(op);
  };
  graph.operations.clear();
  add(Phase::forward, {});
  add(Phase::loss, {});
  for (Operation op : backward) {
    op.host_thread = 1;
    for (std::uint32_t& dep : op.device_deps) dep += 2;
    graph.operations.push_back(op);
  }
  add(Phase::optimizer, {10});  // the gradient that came second is the first parameter's
  graph.operations.back().issue_deps = {11};
  add(Phase::optimizer, {11});
  add(Phase::optimizer, {9});
  graph.allocations = {{0, MemoryCategory::gradients, 2 * kMiB, kNone, 0},
                       {0, MemoryCategory::buckets, 6 * kMiB, kNone, kNone},
                       {0, MemoryCategory::activations, kMiB, 0, 12},
                       {0, MemoryCategory::gradients, 2 * kMiB, 2, kNone},
                       {0, MemoryCategory::gradients, 2 * kMiB, 4, kNone},
                       {0, MemoryCategory::gradients, 2 * kMiB, 6, kNone}};
  return graph;
}

constexpr BucketCaps kTwoBuckets{2 * kMiB, 100 * kMiB};  // one gradient, then the others

TEST(WithReducerOptions, ViewsNeedNoCopiesBackAndNoSecondGradient) {
  const auto edited = with_reducer_options(step_with_optimizer(),
                                           {.caps = kTwoBuckets, .gradient_as_bucket_view = true});
  ASSERT_TRUE(edited.has_value());
  check_graph(*edited, "edited");
  const auto& ops = edited->operations;
  ASSERT_EQ(ops.size(), 13U) << "two reductions instead of one, three copies fewer";
  EXPECT_EQ(ops[4].kind, OpKind::collective);
  EXPECT_EQ(ops[9].kind, OpKind::collective);
  EXPECT_EQ(ops[10].device_deps, std::vector<std::uint32_t>{9});
  EXPECT_EQ(ops[10].issue_deps, std::vector<std::uint32_t>{9});
  EXPECT_EQ(ops[12].device_deps, std::vector<std::uint32_t>{4});
  std::uint64_t in_buckets = 0;
  for (const Allocation& a : edited->allocations) {
    EXPECT_NE(a.category, MemoryCategory::buckets);
    if (a.category != MemoryCategory::gradients) continue;
    if (a.alloc_op == kNone) in_buckets += a.bytes;
    EXPECT_EQ(a.alloc_op == kNone, a.free_op == kNone) << "freed when its hook has ended";
  }
  EXPECT_EQ(in_buckets, 6 * kMiB);
}

TEST(WithReducerOptions, TheSearchFollowsTheParametersAndReducesItsMap) {
  const auto edited = with_reducer_options(step_with_optimizer(),
                                           {.caps = kTwoBuckets, .find_unused_parameters = true});
  ASSERT_TRUE(edited.has_value());
  check_graph(*edited, "edited");
  const auto& ops = edited->operations;
  ASSERT_EQ(ops.size(), 19U) << "the output's copy, one more bucket, the map and its reduction";
  EXPECT_EQ(ops[1].phase, Phase::forward);
  EXPECT_EQ(ops[1].bytes_written, kMiB);
  // Bucket 0 holds parameters 1 and 2, whose gradients come last and first; the gradient of
  // parameter 0 comes between them and its bucket waits.
  EXPECT_EQ(ops[9].bytes_moved, 4 * kMiB);
  EXPECT_EQ(ops[10].bytes_moved, 2 * kMiB);
  EXPECT_EQ(ops[10].device_deps, std::vector<std::uint32_t>{6});
  EXPECT_EQ(ops[11].kind, OpKind::copy);
  EXPECT_EQ(ops[12].bytes_moved, 3 * 4U);
  EXPECT_EQ(ops[12].dtype, DType::int32);
  // Copied back bucket by bucket, in the order of the parameters.
  EXPECT_EQ(ops[13].device_deps, std::vector<std::uint32_t>{9});
  EXPECT_EQ(ops[15].device_deps, std::vector<std::uint32_t>{10});
  EXPECT_EQ(ops[16].device_deps, std::vector<std::uint32_t>{15});
}

TEST(WithReducerOptions, AStaticGraphKeepsItsMapAndDoesNotSearch) {
  const OperationGraph graph = step_with_optimizer();
  const auto edited =
      with_reducer_options(graph, {.static_graph = true, .find_unused_parameters = true});
  const auto plain = with_reducer_options(graph, {});
  ASSERT_TRUE(edited && plain);
  EXPECT_EQ(edited->operations.size(), plain->operations.size());
  EXPECT_EQ(edited->allocations.size(), plain->allocations.size() + 1);
}

TEST(WithReducerOptions, RefusesWhatTheRecordingDoesNotShow) {
  const ReducerOptions search{.find_unused_parameters = true};
  OperationGraph read_by_backward = step_with_optimizer();
  read_by_backward.operations[2].device_deps = {0};
  EXPECT_FALSE(with_reducer_options(read_by_backward, search).has_value());
  OperationGraph no_optimizer = step_with_optimizer();
  no_optimizer.operations[13].device_deps.clear();
  EXPECT_FALSE(with_reducer_options(no_optimizer, search).has_value());
  OperationGraph accumulated = step_with_optimizer();
  accumulated.operations[3].phase = Phase::loss;
  EXPECT_FALSE(with_reducer_options(accumulated, {.gradient_as_bucket_view = true}).has_value());
}

}  // namespace
}  // namespace bench::simulator
