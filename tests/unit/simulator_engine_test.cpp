// Small graphs whose times can be worked out by hand: what runs side by side, what waits for what,
// and what the resources between devices cost.
#include "simulator/rank_jitter.hpp"
#include "simulator/simulate.hpp"

#include <gtest/gtest.h>

namespace bench::simulator {
namespace {

constexpr double kMs = 1e6;

class GraphBuilder {
 public:
  explicit GraphBuilder(std::int32_t devices, std::vector<std::string> threads = {"main"}) {
    graph.model = "hand-made";
    graph.strategy = "data_parallel";
    graph.devices = devices;
    graph.names = {"", "aten::relu", "copy", "all_reduce"};
    graph.host_threads = std::move(threads);
  }

  // A kernel that takes a millisecond for every 0.9 GB on a V100, whatever its launch adds.
  std::uint32_t kernel(std::int32_t device, double ms, std::uint32_t thread = 0) {
    Operation op;
    op.name = 1;
    op.device = device;
    op.host_thread = thread;
    op.bytes_read = static_cast<std::uint64_t>(ms * kMs * 900 * 0.9);
    return add(op);
  }

  std::uint32_t copy(std::int32_t from, std::int32_t to, double mb) {
    Operation op;
    op.kind = OpKind::copy;
    op.name = 2;
    op.device = from;
    op.peer = to;
    op.stream = from == kNone ? 2 : to == kNone ? 3 : 1;
    op.bytes_moved = static_cast<std::uint64_t>(mb * 1e6);
    return add(op);
  }

  std::uint32_t all_reduce(double mb, std::vector<std::uint32_t> deps) {
    Operation op;
    op.kind = OpKind::collective;
    op.collective = CollectiveKind::all_reduce;
    op.name = 3;
    op.device = 0;
    op.stream = 1;
    op.across_ranks = true;
    op.bytes_moved = static_cast<std::uint64_t>(mb * 1e6);
    op.device_deps = std::move(deps);
    return add(op);
  }

  std::uint32_t add(const Operation& op) {
    graph.operations.push_back(op);
    return static_cast<std::uint32_t>(graph.operations.size() - 1);
  }

  double step_ms(const std::string& machine, SimulationOptions options = {}) const {
    return static_cast<double>(simulate(graph, load_machine(machine), options).timeline.step_ns) /
           kMs;
  }

  OperationGraph graph;
};

constexpr double kNear = 0.2;  // launches, dispatch and copy set-up stay below this many ms

TEST(Engine, OneStreamRunsOneKernelAtATime) {
  GraphBuilder builder(1);
  builder.kernel(0, 5);
  builder.kernel(0, 7);
  EXPECT_NEAR(builder.step_ms("v100"), 12, kNear);
}

TEST(Engine, DevicesRunSideBySideUnlessOneWaits) {
  GraphBuilder builder(2);
  const std::uint32_t first = builder.kernel(0, 5);
  const std::uint32_t second = builder.kernel(1, 7);
  EXPECT_NEAR(builder.step_ms("2xv100-sxm2"), 7, kNear);
  builder.graph.operations[second].device_deps = {first};
  EXPECT_NEAR(builder.step_ms("2xv100-sxm2"), 12, kNear);
}

TEST(Engine, BlockingOperationHoldsItsHostThread) {
  GraphBuilder builder(2);
  const std::uint32_t first = builder.kernel(0, 5);
  builder.graph.operations[first].blocking = true;
  builder.kernel(1, 7);
  EXPECT_NEAR(builder.step_ms("2xv100-sxm2"), 12, kNear);
}

TEST(Engine, CopiesShareTheSwitchButNotTheirOwnLinks) {
  // GPUs 0 and 1 of a DGX-1 share a PCIe switch of 12 GB/s, 0 and 2 do not.
  GraphBuilder builder(2);
  builder.copy(kNone, 0, 120);
  builder.copy(kNone, 1, 120);
  SimulationOptions shared, apart;
  shared.gpus = {0, 1};
  apart.gpus = {0, 2};
  EXPECT_NEAR(builder.step_ms("dgx-1-v100", shared), 20, kNear);
  EXPECT_NEAR(builder.step_ms("dgx-1-v100", apart), 10, kNear);
}

TEST(Engine, CopiesInOppositeDirectionsDoNotShare) {
  GraphBuilder builder(1);
  builder.copy(kNone, 0, 120);
  builder.copy(0, kNone, 120);
  EXPECT_NEAR(builder.step_ms("v100"), 10, kNear);
}

TEST(Engine, PeerCopiesTakeTheBestWayThereIs) {
  GraphBuilder builder(2);
  builder.copy(0, 1, 120);
  SimulationOptions one_link, two_links, no_link;
  one_link.gpus = {0, 1};
  two_links.gpus = {0, 3};
  no_link.gpus = {0, 5};
  EXPECT_NEAR(builder.step_ms("dgx-1-v100", one_link), 6, kNear);
  EXPECT_NEAR(builder.step_ms("dgx-1-v100", two_links), 3, kNear);
  EXPECT_NEAR(builder.step_ms("dgx-1-v100", no_link), 20, kNear);  // QPI, 6 GB/s
  EXPECT_NEAR(builder.step_ms("2xtitan-rtx"), 10, kNear);          // PCIe, peer to peer
  EXPECT_NEAR(builder.step_ms("2xrtx-2080-ti"), 25, kNear);        // staged: 0.4 of PCIe
}

TEST(Engine, CollectiveHidesBehindComputeAndSlowsIt) {
  GraphBuilder builder(1);
  builder.graph.strategy = "distributed";
  const std::uint32_t gradient = builder.kernel(0, 5);
  builder.all_reduce(100, {gradient});
  builder.kernel(0, 20);
  SimulationOptions eight;
  eight.world_size = 8;
  eight.rank_jitter = 0;
  Machine machine = load_machine("dgx-1-v100");
  machine.gpu.overlap_slowdown.value = 0;
  const double alone =
      static_cast<double>(simulate(builder.graph, machine, eight).timeline.step_ns);
  EXPECT_NEAR(alone / kMs, 25, kNear);
  machine.gpu.overlap_slowdown.value = 0.5;
  const SimulationResult beside = simulate(builder.graph, machine, eight);
  double all_reduce_ns = 0;
  for (const profiling::Interval& i : beside.timeline.intervals) {
    if (i.kind == profiling::IntervalKind::collective) all_reduce_ns = i.end_ns - i.begin_ns;
  }
  EXPECT_GT(all_reduce_ns, 1 * kMs);
  EXPECT_NEAR(static_cast<double>(beside.timeline.step_ns) - alone, 0.5 * all_reduce_ns, 2);
}

TEST(Engine, ReplicaThreadsShareTheInterpreterLock) {
  constexpr int kOperations = 200;
  auto step = [&](int replicas, HostProfile host) {
    std::vector<std::string> threads{"main"};
    for (int i = 0; i < replicas; ++i) threads.push_back("replica:" + std::to_string(i));
    GraphBuilder builder(replicas, threads);
    for (int op = 0; op < kOperations; ++op) {
      for (int i = 0; i < replicas; ++i) builder.kernel(i, 0, static_cast<std::uint32_t>(i) + 1);
    }
    SimulationOptions options;
    options.host = host;
    return builder.step_ms("4xv100-sxm2", options);
  };
  EXPECT_NEAR(step(4, HostProfile::cpp), step(1, HostProfile::cpp), kNear);
  // Python's part of an operation is 20 us of 30: two replicas need 40, four need 80.
  EXPECT_NEAR(step(4, HostProfile::python) / step(2, HostProfile::python), 2, 0.05);
  EXPECT_GT(step(4, HostProfile::python), 2.5 * step(1, HostProfile::python));
}

TEST(Engine, StragglerAndJitterDelayJobsOnly) {
  GraphBuilder builder(1);
  builder.kernel(0, 20);
  SimulationOptions slow;
  slow.straggler = 1.5;
  EXPECT_NEAR(builder.step_ms("dgx-a100", slow), builder.step_ms("dgx-a100"), 1e-9);
  builder.graph.strategy = "distributed";
  builder.graph.world_size = 8;
  SimulationOptions even;
  even.rank_jitter = 0;
  const double fair = builder.step_ms("dgx-a100", even);
  slow.rank_jitter = 0;
  EXPECT_NEAR(builder.step_ms("dgx-a100", slow), 1.5 * fair, kNear);
  SimulationOptions drawn;
  drawn.draw_jitter = true;
  drawn.rank_jitter = 0.05;
  const double once = builder.step_ms("dgx-a100", drawn);
  EXPECT_EQ(builder.step_ms("dgx-a100", drawn), once);
  drawn.seed = 2;
  EXPECT_NE(builder.step_ms("dgx-a100", drawn), once);
}

TEST(RankJitter, ExpectedMaximumMatchesTables) {
  // Exact expectations of the largest of n standard normal variables.
  EXPECT_NEAR(expected_maximum(2), 0.5642, 0.03);
  EXPECT_NEAR(expected_maximum(8), 1.4236, 0.02);
  EXPECT_NEAR(expected_maximum(256), 2.83, 0.03);
  EXPECT_NEAR(expected_maximum(1024), 3.24, 0.03);
  EXPECT_EQ(expected_maximum(1), 0);
}

}  // namespace
}  // namespace bench::simulator
