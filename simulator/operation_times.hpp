// How long every operation of a graph takes on a machine: on its device, and on the host thread
// that issues it. Everything the engine adds to this is waiting.
#pragma once

#include "simulator/collective_time.hpp"
#include "simulator/host_costs.hpp"
#include "simulator/mixed_job.hpp"
#include "simulator/service_order.hpp"
#include "simulator/simulate.hpp"
#include "simulator/topology.hpp"

#include <cstdint>
#include <vector>

namespace bench::simulator {

struct OperationTimes {
  std::vector<std::int64_t> device_ns;  // by unit; copies: their fixed part, links come on top
  std::vector<std::int64_t> issue_ns;
  std::vector<std::int64_t> locked_ns;  // the first part of issue_ns, under the interpreter lock
  // Collectives: what they take from the kernels beside them.
  std::vector<std::int64_t> slowdown_ns;
  std::int64_t launch_latency_ns = 0;
  // The worst of the collectives that were estimated, weighted by nothing: for the error band.
  double collective_error = 0;
  Provenance collective_provenance = Provenance::measured;
  std::string collective_basis;
};

// `machine`, `topology` and `gpus` are those of one kind of node, `job` is everybody who takes part
// in collectives across ranks. Throws UsageError when the durations
// add up to more than 64 bits of nanoseconds hold.
OperationTimes operation_times(const OperationGraph& graph, const ServiceOrder& order,
                               const Machine& machine, const Topology& topology,
                               const std::vector<int>& gpus, const std::vector<JobPart>& job,
                               const SimulationOptions& options);

}  // namespace bench::simulator
