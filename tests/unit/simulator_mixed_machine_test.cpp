// Machines with nodes of several kinds: files, and laws of the jobs on them.
#include "bench/core/error.hpp"
#include "bench/core/temporary_directory.hpp"
#include "bench/micro/layered_graph.hpp"
#include "simulator/mixed_job.hpp"
#include "simulator/nccl_model.hpp"
#include "simulator/simulate.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/simulator_random_graph.hpp"

namespace bench::simulator {
namespace {

Machine mixed(std::vector<Machine> groups) {
  Machine machine = groups.front();
  machine.groups = std::move(groups);
  machine.name = "mixed";
  return machine;
}

std::int64_t step_ns(const OperationGraph& graph, const Machine& machine, int ranks,
                     double jitter = 0) {
  SimulationOptions options;
  options.world_size = ranks;
  options.rank_jitter = jitter;
  return simulate(graph, machine, options).timeline.step_ns;
}

// Every figure of a node at half its speed.
Machine slowed(Machine machine) {
  machine.gpu.fp32_tflops.value /= 2;
  machine.gpu.memory_bandwidth.value /= 2;
  machine.gpu.launch_ns.value *= 2;
  machine.gpu.nvlink_bandwidth.value /= 2;
  machine.gpu.pcie_bandwidth.value /= 2;
  machine.node.nic_bandwidth.value /= 2;
  machine.node.host_slowdown.value *= 2;
  machine.collectives.clear();
  return machine;
}

TEST(MixedMachine, EqualGroupsAreTheUniformMachineToTheBit) {
  for (const char* node : {"dgx-a100", "dgx-1-v100", "hgx-h100"}) {
    const Machine one = load_machine(node);
    const Machine two = load_machine("2x" + std::string(node));
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      OperationGraph graph = random_graph(seed);
      if (graph.strategy != "distributed") continue;
      SimulationOptions options;
      options.world_size = 16;
      options.rank_jitter = 0;  // the expected slowest of 16 is not that of 8
      const auto expected = simulate(graph, two, options);
      const auto found = simulate(graph, mixed({one, one}), options);
      ASSERT_EQ(found.timeline.step_ns, expected.timeline.step_ns) << node << " " << seed;
      ASSERT_EQ(found.bytes_communicated, expected.bytes_communicated);
      ASSERT_EQ(found.error.relative, expected.error.relative);
    }
  }
}

TEST(MixedMachine, LiesBetweenAllFastAndAllSlow) {
  for (const char* node : {"dgx-a100", "dgx-1-v100", "hgx-h100"}) {
    Machine fast = load_machine(node);
    fast.collectives.clear();
    const Machine slow = slowed(fast);
    Machine all_fast = fast;
    Machine all_slow = slow;
    all_fast.node_count = all_slow.node_count = 2;
    for (const std::int64_t width : {60, 900}) {
      const OperationGraph graph = layered_graph(static_cast<int>(width), 8);
      for (const int ranks : {9, 12, 16}) {
        const auto step = step_ns(graph, mixed({fast, slow}), ranks);
        ASSERT_GE(step, step_ns(graph, all_fast, ranks)) << node;
        ASSERT_LE(step, step_ns(graph, all_slow, ranks)) << node;
        if (ranks < 16) continue;
        ASSERT_EQ(step, step_ns(graph, mixed({slow, fast}), ranks)) << "whole nodes, any order";
      }
    }
  }
}

TEST(MixedMachine, OnlyGroupsThatTakePartCount) {
  const Machine fast = load_machine("dgx-a100");
  const Machine slow = load_machine("dgx-1-v100");
  const OperationGraph graph = layered_graph(900, 8);
  EXPECT_EQ(step_ns(graph, mixed({fast, slow}), 8, 0.02), step_ns(graph, fast, 8, 0.02));
  EXPECT_EQ(step_ns(graph, mixed({slow, fast}), 8, 0.02), step_ns(graph, slow, 8, 0.02));
  SimulationOptions second;
  second.world_size = 8;
  for (int gpu = 8; gpu < 16; ++gpu) second.gpus.push_back(gpu);
  SimulationOptions alone;
  alone.world_size = 8;
  EXPECT_EQ(simulate(graph, mixed({fast, slow}), second).timeline.step_ns,
            simulate(graph, slow, alone).timeline.step_ns);
}

TEST(MixedMachine, OneProcessStaysOnTheFirstKind) {
  const Machine fast = load_machine("dgx-a100");
  const OperationGraph single = layered_graph(900, 1);
  EXPECT_EQ(simulate(single, mixed({fast, load_machine("dgx-1-v100")}), {}).timeline.step_ns,
            simulate(single, fast, {}).timeline.step_ns);
}

TEST(MixedMachine, ThousandsOfGpusCostAsMuchAsTwoKinds) {
  const OperationGraph graph = layered_graph(900, 8);
  SimulationOptions options;
  options.world_size = 1024;
  const Machine machine = mixed({load_machine("64xdgx-a100"), load_machine("64xdgx-1-v100")});
  const auto groups = simulate_groups(graph, machine, options);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].ranks, 512);
  EXPECT_EQ(groups[0].result.events, groups[1].result.events);
  EXPECT_EQ(slowest_group(groups), 1U) << "V100s";
  EXPECT_TRUE(groups[1].result.timeline.ranks_collapsed);
}

TEST(MixedMachine, CollectivesMoveAtThePaceOfTheSlowest) {
  const Machine machine = mixed({load_machine("dgx-a100"), load_machine("dgx-1-v100")});
  std::vector<int> gpus;
  for (int i = 0; i < 16; ++i) gpus.push_back(i);
  const auto parts = job_parts(machine, gpus);
  ASSERT_EQ(parts.size(), 2U);
  for (const JobPart& part : parts) {
    EXPECT_EQ(part.job.ranks, 16);
    EXPECT_EQ(part.job.nodes, 2);
    EXPECT_GT(part.job.network_gb_per_s, 0);
  }
  const JobCollectives all(parts);
  for (double bytes = 1024; bytes < 1e9; bytes *= 8) {
    const double ns = all.estimate(CollectiveKind::all_reduce, bytes).ns;
    for (const JobPart& part : parts) {
      const CollectiveModel own(*part.machine, part.job);
      EXPECT_GE(ns, own.ns(CollectiveKind::all_reduce, bytes));
      EXPECT_GE(ns, least_collective_ns(CollectiveKind::all_reduce, bytes, part.job));
    }
  }
}

TEST(MixedMachine, RefusesSpeedsOfRanksBesideIt) {
  SimulationOptions options;
  options.world_size = 16;
  options.rank_speeds = {0.5};
  const Machine machine = mixed({load_machine("dgx-a100"), load_machine("dgx-1-v100")});
  EXPECT_THROW(simulate(layered_graph(900, 8), machine, options), UsageError);
}

class MixedFile : public ::testing::Test {
 protected:
  Machine load(const std::string& text) {
    std::ofstream(path_) << text;
    return load_machine(path_);
  }

  std::string failure(const std::string& text) {
    try {
      load(text);
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  }

  void expect_failure(const std::string& text, const std::string& line, const std::string& what) {
    const std::string found = failure(text);
    EXPECT_NE(found.find(path_ + ":" + line), std::string::npos) << found;
    EXPECT_NE(found.find(what), std::string::npos) << found;
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.file("mixed.toml");
};

constexpr const char* kTwoKinds =
    "[[group]]\nnode = \"dgx-a100\"\nnodes = 3\n[[group]]\nnode = \"dgx-1-v100\"\n";

TEST_F(MixedFile, ListsGroupsOfNodes) {
  const Machine machine = load(kTwoKinds);
  EXPECT_EQ(machine.gpu_count(), 32);
  ASSERT_EQ(machine.groups.size(), 2U);
  EXPECT_EQ(machine.groups[0].node_count, 3);
  EXPECT_EQ(machine.gpu.name, machine.groups[0].gpu.name);
  EXPECT_NE(machine.title.find(" + 1 x "), std::string::npos) << machine.title;
}

TEST_F(MixedFile, GroupsOfOneKindAreOne) {
  const Machine machine =
      load("[[group]]\nnode = \"dgx-a100\"\n[[group]]\nnode = \"dgx-a100\"\nnodes = 2\n");
  EXPECT_TRUE(machine.groups.empty());
  const OperationGraph graph = layered_graph(900, 8);
  EXPECT_EQ(step_ns(graph, machine, 24, 0.02),
            step_ns(graph, load_machine("3xdgx-a100"), 24, 0.02));
}

TEST_F(MixedFile, RefusesWithFileAndLine) {
  expect_failure("[[group]]\nnode = \"dgx-a10\"\n", "2", "dgx-a100");
  expect_failure("[[group]]\nnode = \"none.toml\"\n", "2", "cannot read");
  expect_failure("[[group]]\nnode = \"pcie-8x4090\"\n", "2", "no network");
  expect_failure("[[group]]\nnode = \"dgx-a100\"\nnodes = 0\n", "3", "nodes");
  expect_failure("[[group]]\nnode = \"dgx-a100\"\ngpus = 4\n", "3", "gpus");
  expect_failure("[[group]]\nnodes = 2\n", "1", "node");
  expect_failure("group = 3\n", "1", "group");
  expect_failure(std::string("gpu = \"h100\"\n") + kTwoKinds, "1", "gpu");
  load(kTwoKinds);
  EXPECT_THROW(load_machine("2x" + path_), UsageError) << "twice what?";
}

}  // namespace
}  // namespace bench::simulator
