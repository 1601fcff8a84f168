// The engine: walks the events of a service order and gives each its time. Resources are host
// threads, the interpreter lock, the streams of every device and the links between them; each
// serves one request after another in the fixed order, so every time is a maximum of sums of
// durations.
#pragma once

#include "simulator/operation_times.hpp"
#include "simulator/service_order.hpp"
#include "simulator/topology.hpp"

#include <cstdint>
#include <vector>

namespace bench::simulator {

struct Schedule {
  // By operation.
  std::vector<std::int64_t> issue_begin_ns;
  std::vector<std::int64_t> issue_end_ns;
  // By unit: on the device; syncs and host work end when the host goes on.
  std::vector<std::int64_t> begin_ns;
  std::vector<std::int64_t> end_ns;
  // By link of the topology.
  std::vector<std::uint64_t> link_bytes;
  std::vector<std::int64_t> link_busy_ns;
  std::int64_t step_ns = 0;
  std::uint64_t events = 0;
};

// `ranks_per_switch`: equal ranks that use a switch at the same time as the simulated one.
Schedule run_engine(const OperationGraph& graph, const ServiceOrder& order,
                    const OperationTimes& times, const Topology& topology, HostProfile host,
                    std::int32_t ranks_per_switch);

}  // namespace bench::simulator
