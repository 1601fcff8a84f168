// Which recording answers for a case, and the edits that lead from that recording to the case. One
// recording serves every number of micro-batches and most of DDP's options.
#pragma once

#include "bench/core/case.hpp"
#include "simulator/operation_graph.hpp"

#include <optional>

namespace bench {

// The case whose recording is edited into that of `work`: DDP's defaults, and three micro-batches
// where there are several. Where gradients are accumulated, what the Reducer does differently is
// recorded and not edited, except for bucket sizes under no_sync.
Case standard_case(const Case& work);

// The recorded step of standard_case(work), edited into that of `work`; nullopt where the recording
// does not show how.
std::optional<simulator::OperationGraph> edited_step(const simulator::OperationGraph& standard,
                                                     const Case& work);

}  // namespace bench
