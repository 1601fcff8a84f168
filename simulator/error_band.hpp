// How far a simulated step may be off, from the provenance of what it was made from.
#pragma once

#include "simulator/engine.hpp"
#include "simulator/simulate.hpp"

namespace bench::simulator {

ErrorBand error_band(const OperationGraph& graph, const ServiceOrder& order, const Machine& machine,
                     const OperationTimes& times, const Schedule& schedule,
                     const SimulationOptions& options);

}  // namespace bench::simulator
