// The memory of the primary GPU over a predicted step, by category: what the text shows as a line
// of blocks, the page as a chart and JSON as numbers. Times are the host's: the allocator hands
// memory out when work is issued, ahead of the GPU.
#pragma once

#include "profiling/timeline.hpp"

#include <string>
#include <vector>

namespace bench {

struct Prediction;

// The samples of a device with at most `most` of them left: of each stretch of time the one with
// the most bytes in use, so that no peak is lost.
std::vector<profiling::MemorySample> memory_over_time(const profiling::Timeline& timeline,
                                                      std::int32_t device, std::size_t most);

// "▁▂▅▇█▆▃▁": blocks of equal time while the host issues the step, of height in use over the peak.
std::string memory_blocks(const Prediction& prediction);
// A chart with its heading; empty where nothing was predicted.
std::string memory_page(const Prediction& prediction, const std::string& title);

}  // namespace bench
