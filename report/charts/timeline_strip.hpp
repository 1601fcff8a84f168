// One step drawn stream by stream: per GPU a lane of compute, coloured by phase, over a lane of
// communication. Several steps share one time axis, so their lengths compare by eye.
#pragma once

#include "profiling/chrome_trace.hpp"

#include <string>
#include <vector>

namespace bench::report {

// GPUs drawn per step; further ones are counted in a note.
inline constexpr std::int32_t kMaxStripDevices = 8;

// Legend and SVG; empty without timelines.
std::string draw_timelines(const std::vector<profiling::TracedStep>& steps);

}  // namespace bench::report
