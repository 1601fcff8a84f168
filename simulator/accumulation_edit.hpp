// Gradient accumulation as an edit of a recording: a step of three micro-batches shows the first
// one, which makes the gradients, one in the middle, which adds to them, and the last, which under
// no_sync is the one that reduces them. Any other number of micro-batches of the same size is that
// step with the one in the middle repeated, or left out.
#pragma once

#include "simulator/operation_graph.hpp"

#include <optional>

namespace bench::simulator {

inline constexpr int kRecordedMicroBatches = 3;
inline constexpr int kLeastMicroBatches = 2;  // one alone neither accumulates nor ends accumulation

// nullopt where the recording does not show what a repetition does: it has not three micro-batches,
// the last does not contain the work of the one in the middle, or something waits for the one in
// the middle or keeps its memory in a way that the last does not repeat.
std::optional<OperationGraph> with_micro_batches(const OperationGraph& graph, int count);

}  // namespace bench::simulator
