// The order in which shared resources serve operations, fixed by the graph alone.
//
// Links and the interpreter lock serve requests one after another. If the order followed from the
// simulated times, a faster link could change it and make the whole step slower (Graham's
// scheduling anomalies). Here the order comes from a nominal machine: each operation's times where
// nothing is shared and every figure is that of a middling GPU. With the order fixed, every time in
// the simulation is a maximum of sums of durations, so that shortening any duration never delays
// anything.
#pragma once

#include "bench/core/case.hpp"
#include "simulator/operation_graph.hpp"

#include <cstdint>
#include <vector>

namespace bench::simulator {

inline constexpr std::uint32_t kNoMember = 0xffffffffU;

struct ServiceOrder {
  struct Event {
    std::int64_t nominal_ns = 0;
    std::uint32_t op = 0;  // start: the operation that stands for its group
    bool start = false;    // false: the host issues it; true: its device starts it
  };
  // Dependencies point backwards in this order too.
  std::vector<Event> events;
  // The member that stands for a collective's group (the last one); other operations are their own.
  std::vector<std::uint32_t> unit;
  // From the member that stands for the group through the others; ends in kNoMember.
  std::vector<std::uint32_t> next_member;
  // Nominal start and end on the device, by unit.
  std::vector<std::int64_t> begin_ns;
  std::vector<std::int64_t> end_ns;
};

inline constexpr std::int32_t kStreamsPerDevice = 4;
// The device whose stream runs `op`: a copy from host memory runs on its destination. kNone for
// work of the host.
std::int32_t stream_device(const Operation& op);
bool blocks_host(const Operation& op);

// Throws UsageError when members of collectives wait for each other in a circle.
ServiceOrder service_order(const OperationGraph& graph, HostProfile host);

}  // namespace bench::simulator
