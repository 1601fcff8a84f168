// Timelines as Chrome trace events, for Perfetto and chrome://tracing: one process per rank, one
// track per stream and host thread, counters for memory. Several steps share one file, each as
// processes of its own that start at zero, so that two strategies line up under each other.
//
// Complete events on one track never overlap: where intervals of a stream do (concurrent kernels),
// the later one moves to an extra track of the same stream.
#pragma once

#include "profiling/timeline.hpp"

#include <string>
#include <vector>

namespace bench::profiling {

struct TracedStep {
  std::string title;  // "distributed resnet50, 4 GPUs, batch 256"
  Timeline timeline;
};

inline constexpr std::int32_t kMaxTracedRanks = 8;

// Collapsed ranks are written out up to `max_ranks`; beyond, rank 0 stands for all and says so.
std::string chrome_trace_json(const std::vector<TracedStep>& steps,
                              std::int32_t max_ranks = kMaxTracedRanks);
// The steps of a file that chrome_trace_json wrote. Throws UsageError that names `origin`.
std::vector<TracedStep> parse_chrome_trace(const std::string& json, const std::string& origin);

}  // namespace bench::profiling
