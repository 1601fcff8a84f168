// Laws that hold whatever the graph and the machine: a step is never shorter than its parts, bytes
// sent are bytes received, nothing faster makes anything slower, and time is the same to the bit.
#include "bench/core/error.hpp"
#include "bench/micro/layered_graph.hpp"
#include "simulator/collective_time.hpp"
#include "simulator/kernel_time.hpp"
#include "simulator/simulate.hpp"
#include "simulator/topology.hpp"

#include "profiling/analysis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <thread>

#include "tests/unit/simulator_random_graph.hpp"

namespace bench::simulator {
namespace {

constexpr std::uint64_t kTrials = 100;
constexpr const char* kMachines[] = {"dgx-1-v100",   "dgx-a100",    "hgx-h200",  "pcie-8x4090",
                                     "4xtitan-rtx",  "8xv100-pcie", "8xp100",    "2xdgx-a100",
                                     "2xdgx-1-v100", "dgx-2",       "8xrtx-3090"};

struct Trial {
  OperationGraph graph;
  Machine machine;
  SimulationOptions options;
};

const Machine& machine_of(std::size_t index) {
  static const std::vector<Machine> machines = [] {
    std::vector<Machine> loaded;
    for (const char* name : kMachines) loaded.push_back(load_machine(name));
    return loaded;
  }();
  return machines[index];
}

Trial random_trial(std::uint64_t seed) {
  std::mt19937_64 random(seed * 7919 + 1);
  Trial trial;
  trial.graph = random_graph(seed);
  do {
    trial.machine = machine_of(random() % std::size(kMachines));
  } while (trial.machine.gpu_count() < trial.graph.devices * trial.graph.world_size);
  trial.options.host = random() % 2 == 0 ? HostProfile::cpp : HostProfile::python;
  return trial;
}

SimulationResult run(const Trial& trial) {
  return simulate(trial.graph, trial.machine, trial.options);
}

std::string bits_of(const SimulationResult& result) {
  std::string bits = std::to_string(result.timeline.step_ns);
  for (const profiling::Interval& i : result.timeline.intervals) {
    bits += ";" + std::to_string(i.begin_ns) + "," + std::to_string(i.end_ns) + "," +
            std::to_string(i.device) + "," + std::to_string(i.stream);
  }
  for (const profiling::MemorySample& s : result.timeline.memory) {
    bits += ";" + std::to_string(s.time_ns) + "," + std::to_string(s.bytes);
  }
  return bits;
}

TEST(SimulatorLaws, StepIsNeverShorterThanWhatItIsMadeOf) {
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    const Trial trial = random_trial(seed);
    const SimulationResult result = run(trial);
    std::map<std::pair<int, int>, std::int64_t> busy;
    for (const profiling::Interval& i : result.timeline.intervals) {
      ASSERT_GE(i.begin_ns, 0);
      ASSERT_LE(i.end_ns, result.timeline.step_ns) << seed;
      if (i.device >= 0 && i.bytes == 0 && i.kind == profiling::IntervalKind::copy) continue;
      busy[{i.device, i.stream}] += i.end_ns - i.begin_ns;
    }
    for (const auto& [track, ns] : busy) ASSERT_LE(ns, result.timeline.step_ns) << seed;
    for (const LinkTraffic& link : result.links) {
      ASSERT_LE(link.busy_ns, result.timeline.step_ns) << link.name;
    }
  }
}

TEST(SimulatorLaws, StreamsAndThreadsDoOneThingAtATime) {
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    const SimulationResult result = run(random_trial(seed));
    const auto& intervals = result.timeline.intervals;
    for (std::size_t i = 1; i < intervals.size(); ++i) {
      const auto& a = intervals[i - 1];
      const auto& b = intervals[i];
      const bool received = b.kind == profiling::IntervalKind::copy && b.stream == 1;
      const bool receives = a.kind == profiling::IntervalKind::copy && a.stream == 1;
      if (a.device != b.device || a.stream != b.stream || received || receives) continue;
      ASSERT_LE(a.end_ns, b.begin_ns) << seed;
    }
  }
}

TEST(SimulatorLaws, BytesSentAreBytesReceived) {
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    const SimulationResult result = run(random_trial(seed));
    std::uint64_t sent = result.host.sent_bytes;
    std::uint64_t received = result.host.received_bytes;
    for (const DeviceTraffic& device : result.devices) {
      sent += device.sent_bytes;
      received += device.received_bytes;
    }
    ASSERT_EQ(sent, received) << seed;
  }
}

TEST(SimulatorLaws, MemoryInUseIsThatOfItsCategoriesAndOfWhatIsLeftAtTheEnd) {
  std::size_t samples = 0;
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    const Trial trial = random_trial(seed);
    std::map<std::int32_t, std::uint64_t> left;
    for (const Allocation& a : trial.graph.allocations) {
      if (a.free_op == kNone) left[a.device] += a.bytes;
    }
    std::map<std::int32_t, std::uint64_t> last;
    for (const profiling::MemorySample& sample : run(trial).timeline.memory) {
      std::uint64_t sum = 0;
      for (const std::uint64_t bytes : sample.by_category) sum += bytes;
      EXPECT_EQ(sum, sample.bytes) << seed;
      last[sample.device] = sample.bytes;
      ++samples;
    }
    for (const auto& [device, bytes] : left) EXPECT_EQ(last[device], bytes) << seed;
  }
  EXPECT_GT(samples, kTrials);
}

TEST(SimulatorLaws, DependenciesAreKept) {
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    Trial trial = random_trial(seed);
    // Names tell the intervals of operations apart.
    for (std::uint32_t i = 0; i < trial.graph.operations.size(); ++i) {
      trial.graph.operations[i].name = static_cast<std::uint32_t>(trial.graph.names.size());
      trial.graph.names.push_back("op" + std::to_string(i));
    }
    std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> on_device;
    for (const profiling::Interval& i : run(trial).timeline.intervals) {
      if (i.device >= 0) on_device[i.name] = {i.begin_ns, i.end_ns};
    }
    for (const Operation& op : trial.graph.operations) {
      for (const std::uint32_t dep : op.device_deps) {
        const Operation& before = trial.graph.operations[dep];
        if (!on_device.contains(op.name) || !on_device.contains(before.name)) continue;
        if (op.group != 0 && op.group == before.group) continue;
        ASSERT_LE(on_device[before.name].second, on_device[op.name].first) << seed;
      }
    }
  }
}

void make_faster(Machine& machine, int what, double factor) {
  switch (what) {
    case 0:
      machine.gpu.nvlink_bandwidth.value *= factor;
      break;
    case 1:
      machine.gpu.pcie_bandwidth.value *= factor;
      break;
    case 2:
      machine.gpu.memory_bandwidth.value *= factor;
      break;
    case 3:
      machine.gpu.fp32_tflops.value *= factor;
      break;
    case 4:
      machine.node.socket_bandwidth.value *= factor;
      break;
    case 5:
      machine.node.nic_bandwidth.value *= factor;
      break;
    case 6:
      machine.node.staged_bandwidth.value *= factor;
      break;
    case 7:
      machine.node.host_slowdown.value /= factor;
      break;
    case 8:
      machine.gpu.launch_ns.value /= factor;
      break;
    default:
      for (int each = 0; each < 9; ++each) make_faster(machine, each, factor);
  }
}

TEST(SimulatorLaws, NothingFasterHurts) {
  for (std::uint64_t seed = 0; seed < kTrials / 2; ++seed) {
    for (int what = 0; what <= 9; ++what) {
      Trial trial = random_trial(seed);
      std::int64_t before = run(trial).timeline.step_ns;
      for (const double factor : {1.05, 1.5, 8.0}) {
        make_faster(trial.machine, what, factor);
        const std::int64_t after = run(trial).timeline.step_ns;
        ASSERT_LE(after, before) << "seed " << seed << ", part " << what << ", " << factor << " x, "
                                 << trial.machine.name;
        before = after;
      }
    }
  }
}

TEST(SimulatorLaws, OverlapIsAtMostTheLesserOfComputeAndCommunication) {
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    for (const auto& device : profiling::analyze(run(random_trial(seed)).timeline).devices) {
      ASSERT_LE(device.overlap_ns, std::min(device.compute_ns, device.communication_ns));
    }
  }
}

TEST(SimulatorLaws, SameBitsEveryTimeAndUnderLoad) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Trial trial = random_trial(seed);
    const std::string expected = bits_of(run(trial));
    std::string found[4];
    std::vector<std::thread> threads;
    for (std::string& bits : found) threads.emplace_back([&] { bits = bits_of(run(trial)); });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& bits : found) ASSERT_EQ(bits, expected) << seed;
  }
}

TEST(SimulatorLaws, WorldOfOneIsSingle) {
  const OperationGraph single = layered_graph(900, 1);
  OperationGraph alone = single;
  alone.strategy = "distributed";
  const Machine machine = load_machine("dgx-a100");
  EXPECT_EQ(simulate(alone, machine, {}).timeline.step_ns,
            simulate(single, machine, {}).timeline.step_ns);
  // A collective among one rank takes no time on the device.
  OperationGraph job = layered_graph(900, 8);
  SimulationOptions one;
  one.world_size = 1;
  const SimulationResult result = simulate(job, machine, one);
  for (const profiling::Interval& i : result.timeline.intervals) {
    EXPECT_NE(i.kind, profiling::IntervalKind::collective);
  }
  EXPECT_EQ(result.bytes_communicated, 0U);
}

TEST(SimulatorLaws, CollectivesRespectTheirBound) {
  for (const char* name : kMachines) {
    const Machine machine = load_machine(name);
    for (std::int32_t ranks = 2; ranks <= machine.gpu_count(); ranks *= 2) {
      std::vector<int> gpus(static_cast<std::size_t>(ranks));
      for (std::int32_t i = 0; i < ranks; ++i) gpus[static_cast<std::size_t>(i)] = i;
      const NcclTopology job = Topology(machine, gpus).job();
      const double sends = machine.gpu.reduces_in_switch ? 1.0 : 2.0;
      double bus = job.ring_gb_per_s;
      if (job.nodes > 1) bus = std::min(bus, job.network_gb_per_s);
      const CollectiveModel model(machine, job);
      for (double bytes = 4; bytes < 1e12; bytes *= 3) {
        const double least = sends * (ranks - 1) / ranks * bytes / bus;
        ASSERT_GE(model.ns(CollectiveKind::all_reduce, bytes), least) << name << " " << ranks;
        ASSERT_GE(model.ns(CollectiveKind::broadcast, bytes), bytes / bus) << name << " " << ranks;
      }
    }
  }
}

TEST(SimulatorLaws, UnequalRanksWaitForTheSlowestClass) {
  const OperationGraph job = layered_graph(900, 8);
  const Machine machine = load_machine("dgx-a100");
  SimulationOptions options;
  options.rank_jitter = 0;
  auto step = [&](std::vector<double> speeds) {
    options.rank_speeds = std::move(speeds);
    return simulate(job, machine, options).timeline.step_ns;
  };
  EXPECT_EQ(step({1, 1, 1}), step({}));
  EXPECT_EQ(step({0.5, 1, 1, 1}), step({1, 1, 1, 0.5, 0.8}));
  EXPECT_GT(step({0.5}), step({0.8}));
  EXPECT_LT(step({2, 2, 2, 2, 2, 2, 2, 2}), step({}));
  EXPECT_THROW(step({0}), UsageError);
  const auto alone = step({0.8});
  options.straggler = 1 / 0.8;
  EXPECT_EQ(step({}), alone) << "one slow rank is a straggler";
  // Jitter counts among equals only: one rank that is slow beyond it decides alone.
  options.straggler = 1;
  options.rank_jitter = 0.02;
  EXPECT_EQ(step({0.8}), alone);
}

TEST(SimulatorLaws, KernelsRespectTheirRoofline) {
  std::mt19937_64 random(5);
  const Machine machine = load_machine("h100");
  for (int trial = 0; trial < 2000; ++trial) {
    Operation op;
    op.flops = std::pow(10.0, static_cast<double>(random() % 140) / 10);
    op.bytes_read =
        static_cast<std::uint64_t>(std::pow(10.0, static_cast<double>(random() % 110) / 10));
    const double time = kernel_ns(op, "aten::addmm", "", machine.gpu);
    ASSERT_GE(time, op.flops / (machine.gpu.fp32_tflops * 1000));
    ASSERT_GE(time, static_cast<double>(op.bytes_read) / machine.gpu.memory_bandwidth);
    Operation larger = op;
    larger.flops *= 1.3;
    larger.bytes_read += larger.bytes_read / 3;
    ASSERT_GE(kernel_ns(larger, "aten::addmm", "", machine.gpu), time);
  }
}

TEST(SimulatorLaws, HoursLongStepsDoNotOverflow) {
  OperationGraph graph = layered_graph(900, 8);
  for (Operation& op : graph.operations) op.flops *= 1e7;
  const SimulationResult result = simulate(graph, load_machine("dgx-a100"), {});
  EXPECT_GT(result.timeline.step_ns, 3600LL * 1000 * 1000 * 1000);
  for (Operation& op : graph.operations) op.flops *= 1e9;
  EXPECT_THROW(simulate(graph, load_machine("dgx-a100"), {}), std::runtime_error);
}

TEST(SimulatorLaws, RankCountDoesNotChangeTheCostOfSimulating) {
  const OperationGraph graph = layered_graph(900, 8);
  SimulationOptions options;
  options.world_size = 1024;
  const SimulationResult large = simulate(graph, load_machine("128xdgx-a100"), options);
  const SimulationResult small = simulate(graph, load_machine("dgx-a100"), {});
  EXPECT_EQ(large.events, small.events);
  EXPECT_EQ(large.timeline.ranks, 1024);
  EXPECT_GT(large.timeline.step_ns, small.timeline.step_ns);
}

}  // namespace
}  // namespace bench::simulator
