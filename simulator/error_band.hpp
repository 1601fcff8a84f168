// How far a simulated step may be off: what nine published runs in ten of its class stay within
// (docs/accuracy.md), widened by collectives whose own figures are worse than that.
#pragma once

#include "bench/core/strategy.hpp"
#include "simulator/engine.hpp"
#include "simulator/simulate.hpp"

#include <tuple>

namespace bench::simulator {

// Questions whose errors are alike.
struct StepClass {
  Strategy strategy = Strategy::single;
  bool anchored = false;  // a measured single-device step was given
  friend bool operator<(const StepClass& a, const StepClass& b) {
    return std::tie(a.strategy, a.anchored) < std::tie(b.strategy, b.anchored);
  }
};

// The 90th percentile of |predicted / published - 1| over the published runs, rounded up to a per
// cent; `bench validate` prints it beside what the runs say.
double published_band(const StepClass& kind);

ErrorBand error_band(const OperationGraph& graph, const ServiceOrder& order, const Machine& machine,
                     const OperationTimes& times, const Schedule& schedule,
                     const SimulationOptions& options);

}  // namespace bench::simulator
