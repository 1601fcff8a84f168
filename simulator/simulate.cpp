#include "simulator/simulate.hpp"

#include "bench/core/error.hpp"
#include "simulator/engine.hpp"
#include "simulator/error_band.hpp"
#include "simulator/graph_io.hpp"
#include "simulator/mixed_job.hpp"
#include "simulator/timeline_builder.hpp"
#include "simulator/traffic.hpp"

#include <algorithm>
#include <numeric>

namespace bench::simulator {
namespace {

std::int32_t ranks_of(const OperationGraph& graph, const SimulationOptions& options) {
  if (graph.strategy != "distributed") return 1;
  return options.world_size > 0 ? options.world_size : graph.world_size;
}

// Physical GPUs of the job: one for each rank, or one for each device of the process.
std::vector<int> gpus_of(const OperationGraph& graph, const Machine& machine, std::int32_t ranks,
                         const SimulationOptions& options) {
  const std::int32_t needed = ranks * graph.devices;
  std::vector<int> gpus = options.gpus;
  if (gpus.empty()) {
    gpus.resize(static_cast<std::size_t>(needed));
    std::iota(gpus.begin(), gpus.end(), 0);
  }
  if (static_cast<std::int32_t>(gpus.size()) < needed) {
    throw UsageError(graph.strategy + " of " + graph.model + " needs " + std::to_string(needed) +
                     " GPUs, " + std::to_string(gpus.size()) + " are listed");
  }
  gpus.resize(static_cast<std::size_t>(needed));
  if (needed > machine.gpu_count()) {
    throw UsageError(graph.strategy + " of " + graph.model + " needs " + std::to_string(needed) +
                     " GPUs, " + machine.name + " has " + std::to_string(machine.gpu_count()));
  }
  return gpus;
}

void check_options(const SimulationOptions& options) {
  auto fits = [](double scale) { return scale >= 0 && scale < 1e9; };
  if (!fits(options.kernel_scale) || !fits(options.host_scale) || options.world_size < 0) {
    throw UsageError("simulation: scales are numbers from 0, the world size is 0 or more");
  }
  for (const double speed : options.rank_speeds) {
    if (speed > 0 && speed < 1e9) continue;
    throw UsageError("simulation: the speed of a rank is a number above 0");
  }
}

void list_links(const Topology& topology, const Schedule& schedule, SimulationResult& result) {
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    if (schedule.link_bytes[i] == 0) continue;
    result.links.push_back(
        {topology.links()[i].name, schedule.link_bytes[i], schedule.link_busy_ns[i]});
  }
}

// One rank, or one process, on the nodes of one part; `ranks` are those of the whole job.
SimulationResult simulate_part(const OperationGraph& graph, const std::vector<JobPart>& job,
                               const JobPart& part, std::int32_t ranks,
                               const SimulationOptions& options) {
  const Machine& machine = *part.machine;
  const Topology& topology = part.topology;
  const ServiceOrder order = service_order(graph, options.host);
  const OperationTimes times =
      operation_times(graph, order, machine, topology, part.gpus, job, options);
  const std::int32_t ranks_per_switch = ranks > 1 ? topology.sharing_switch(0) : 1;
  const Schedule schedule =
      run_engine(graph, order, times, topology, options.host, ranks_per_switch);
  SimulationResult result;
  result.timeline = build_timeline(graph, order, schedule, ranks, options.keep_intervals);
  result.events = schedule.events;
  count_traffic(graph, order, ranks, result);
  list_links(topology, schedule, result);
  result.error = error_band(graph, order, machine, times, schedule, options);
  return result;
}

}  // namespace

std::vector<GroupSimulation> simulate_groups(const OperationGraph& graph, const Machine& machine,
                                             const SimulationOptions& options) {
  check_options(options);
  check_graph(graph, "operation graph of " + graph.model);
  const std::int32_t ranks = ranks_of(graph, options);
  // One process stays on the nodes of the first kind.
  const bool job = graph.strategy == "distributed";
  const Machine& used = job || machine.groups.empty() ? machine : machine.groups.front();
  if (!used.groups.empty() && !options.rank_speeds.empty()) {
    throw UsageError(
        "simulation: nodes of several kinds have speeds of their own; leave out the "
        "speeds of ranks");
  }
  const std::vector<JobPart> parts = job_parts(used, gpus_of(graph, used, ranks, options));
  std::vector<GroupSimulation> groups;
  for (const JobPart& part : parts) {
    groups.push_back({part.machine->node.title, static_cast<std::int32_t>(part.gpus.size()),
                      simulate_part(graph, parts, part, ranks, options)});
  }
  return groups;
}

std::size_t slowest_group(const std::vector<GroupSimulation>& groups) {
  const auto slowest =
      std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
        return a.result.timeline.step_ns < b.result.timeline.step_ns;
      });
  return static_cast<std::size_t>(slowest - groups.begin());
}

SimulationResult simulate(const OperationGraph& graph, const Machine& machine,
                          const SimulationOptions& options) {
  std::vector<GroupSimulation> groups = simulate_groups(graph, machine, options);
  return std::move(groups[slowest_group(groups)].result);
}

}  // namespace bench::simulator
