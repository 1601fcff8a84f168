// DDP's gradient buckets as an edit of a recording: the same step with other bucket sizes. The
// recording has the order in which gradients become ready, and the Reducer's assignment depends on
// nothing else: tensors are added in that order, and a bucket is closed once it has reached its
// cap.
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

// Sizes of gradients in the order in which they become ready -> how many each bucket holds.
std::vector<std::size_t> assign_buckets(const std::vector<std::uint64_t>& gradient_bytes,
                                        const BucketCaps& caps);

// nullopt where the recording does not show every gradient's way into its bucket and back:
// gradients that are views of their buckets, several reductions in a step, or none.
std::optional<OperationGraph> with_bucket_caps(const OperationGraph& graph, const BucketCaps& caps);

}  // namespace bench::simulator
