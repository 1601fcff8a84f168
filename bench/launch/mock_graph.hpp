// The operation graph that the mock worker records: a handful of operations with the shape of each
// strategy, so that simulated times, memory and traces are small enough to check by hand.
#pragma once

#include "bench/core/case.hpp"
#include "simulator/operation_graph.hpp"

namespace bench::mock {

simulator::OperationGraph graph(const Case& work);

}  // namespace bench::mock
