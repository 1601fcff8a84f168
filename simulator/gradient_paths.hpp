// What the recording of a DDP step shows of every gradient: when it becomes ready and is copied
// into its bucket, the copy back after the reduction, and which parameter it belongs to. What-if
// edits of the Reducer start from it.
#pragma once

#include "simulator/operation_graph.hpp"

#include <cstdint>
#include <vector>

namespace bench::simulator {

struct GradientPath {
  std::uint32_t copy_in = 0;    // scaled into the bucket
  std::uint32_t copy_back = 0;  // and back after the reduction
  std::uint64_t bytes = 0;
};

struct GradientPaths {
  std::vector<GradientPath> gradients;  // in the order in which they become ready
  std::vector<std::uint32_t> buckets;   // the reductions, ascending

  bool empty() const { return gradients.empty(); }
  // Positions in `gradients` in the order of the model's parameters, which the optimizer follows;
  // empty where the optimizer does not show it.
  std::vector<std::size_t> by_parameter(const OperationGraph& graph) const;
};

// Empty where the recording does not show every gradient's way into its bucket and back: gradients
// that are views of their buckets, several reductions in a step, or none.
GradientPaths gradient_paths(const OperationGraph& graph);

}  // namespace bench::simulator
