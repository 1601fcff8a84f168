// Options of DDP's Reducer as an edit of a recording: the same step with other bucket sizes, with
// gradients that are views of their buckets, for a static graph, or with the search for unused
// parameters. The recording, made with the defaults, has the order in which gradients become ready
// and the parameters they belong to; what the Reducer does with an option follows from the two.
#pragma once

#include "simulator/operation_graph.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace bench::simulator {

struct BucketCaps {
  std::uint64_t first_bytes = 1ULL << 20;  // DDP's defaults
  std::uint64_t bytes = 25ULL << 20;
};

struct ReducerOptions {
  BucketCaps caps;
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  bool find_unused_parameters = false;  // without effect on a static graph
};

// Sizes of gradients in the order in which buckets are filled -> how many each bucket holds:
// tensors are added in that order, and a bucket is closed once it has reached its cap.
std::vector<std::size_t> assign_buckets(const std::vector<std::uint64_t>& gradient_bytes,
                                        const BucketCaps& caps);

// nullopt where the recording does not show what the option changes: it was not made with the
// defaults, gradients are reduced several times in a step, or (for the search) the output of the
// model is read by more than the loss.
std::optional<OperationGraph> with_reducer_options(const OperationGraph& graph,
                                                   const ReducerOptions& options);

}  // namespace bench::simulator
