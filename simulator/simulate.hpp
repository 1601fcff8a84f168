// simulate(): operation graph + machine -> Timeline. Pure and deterministic: the same input gives
// the same bits in every run, on every host and under any load.
//
// One graph stands for one process: a single device, a DataParallel process with several devices,
// or one rank of a distributed job. Symmetric ranks are simulated once (Timeline::ranks_collapsed),
// so 1024 ranks cost what 8 do.
#pragma once

#include "bench/core/case.hpp"
#include "simulator/machine.hpp"
#include "simulator/operation_graph.hpp"

#include "profiling/timeline.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench::simulator {

struct SimulationOptions {
  // Physical GPU of the machine for rank or device i; empty = 0, 1, 2... In a job of more ranks
  // than GPUs listed the list must be empty.
  std::vector<int> gpus;
  // Ranks of the job; 0 = as recorded. Another value replays the recorded rank at another scale.
  int world_size = 0;
  HostProfile host = HostProfile::cpp;
  // Anchors: factors on kernel times and host costs (see anchor.hpp).
  double kernel_scale = 1;
  double host_scale = 1;
  // Factor on what replicating one module for one device costs DataParallel's host.
  double replica_scale = 1;
  // Ranks of a job that do the same work differ by this relative standard deviation; nullopt: the
  // machine's. Everybody waits for the slowest, whose expected time is simulated; with
  // `draw_jitter` the ranks' factors are drawn from `seed` instead.
  std::optional<double> rank_jitter;
  bool draw_jitter = false;
  // Relative speeds of the ranks' kernels, for unequal GPUs or nodes; ranks beyond the list have 1.
  // Ranks of one speed stay collapsed: the slowest class, with its jitter, is what all wait for.
  std::vector<double> rank_speeds;
  double straggler = 1;  // one rank's kernels take this many times as long
  std::uint64_t seed = 1;
  bool keep_intervals = true;  // off: step time and traffic only, for sweeps
};

struct DeviceTraffic {
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

struct LinkTraffic {
  std::string name;  // "pcie gpu0 up", "nvlink 0-1", "nic node0 out"
  std::uint64_t bytes = 0;
  std::int64_t busy_ns = 0;
};

// How far off a figure may be, from the provenance of what it was made from.
struct ErrorBand {
  double relative = 0;  // 0.08 = plus or minus 8 %
  Provenance provenance = Provenance::specification;
  std::string reason;  // "all-reduce scaled from A100x8 NVSwitch; kernels from specification"
};

struct SimulationResult {
  profiling::Timeline timeline;
  // Device i of the process, or of the representative rank.
  std::vector<DeviceTraffic> devices;
  DeviceTraffic host;                    // host memory as an end of copies
  std::vector<LinkTraffic> links;        // links that carried something
  std::uint64_t bytes_communicated = 0;  // by copies between GPUs and collectives, over all GPUs
  ErrorBand error;
  std::uint64_t events = 0;  // simulated events, for the microbenchmark
};

// A job on nodes of several kinds (Machine::groups): one simulation for each kind that takes part,
// with the collectives of all, in the order of the groups. A machine whose nodes are alike has one.
struct GroupSimulation {
  std::string node;        // title of the kind of node
  std::int32_t ranks = 0;  // ranks on nodes of this kind
  SimulationResult result;
};
std::vector<GroupSimulation> simulate_groups(const OperationGraph& graph, const Machine& machine,
                                             const SimulationOptions& options);
// The one that everybody waits for.
std::size_t slowest_group(const std::vector<GroupSimulation>& groups);

// The simulation of the slowest group. Throws UsageError when the graph is inconsistent (a
// dependency on a later operation, a group that can never meet) or the machine has fewer GPUs than
// the graph uses.
SimulationResult simulate(const OperationGraph& graph, const Machine& machine,
                          const SimulationOptions& options);

}  // namespace bench::simulator
