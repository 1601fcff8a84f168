// Bytes that every device sends and receives in a step. Both ends of a transfer are counted by the
// same rule, so what is sent is received.
#pragma once

#include "simulator/service_order.hpp"
#include "simulator/simulate.hpp"

namespace bench::simulator {

// Fills devices, host and bytes_communicated of `result`. `ranks`: size of the job.
void count_traffic(const OperationGraph& graph, const ServiceOrder& order, std::int32_t ranks,
                   SimulationResult& result);

}  // namespace bench::simulator
