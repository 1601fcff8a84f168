// Schedule -> Timeline: intervals per device, stream and host thread, phases as the host saw them,
// and bytes in use over time.
#pragma once

#include "simulator/engine.hpp"

#include "profiling/timeline.hpp"

namespace bench::simulator {

profiling::Timeline build_timeline(const OperationGraph& graph, const ServiceOrder& order,
                                   const Schedule& schedule, std::int32_t ranks,
                                   bool keep_intervals);

}  // namespace bench::simulator
