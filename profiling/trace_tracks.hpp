// Tracks of a Chrome trace: which (device, stream, lane) each interval is drawn on. A lane is an
// extra track of a stream, opened only where intervals of that stream overlap.
#pragma once

#include "profiling/timeline.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench::profiling {

struct Track {
  std::int32_t device = 0;  // -1 = host
  std::int32_t stream = 0;  // or host thread
  std::int32_t lane = 0;
  std::string name;                        // "GPU 0 compute", "host main"
  std::vector<const Interval*> intervals;  // disjoint, by begin
};

// The tracks of one rank: host threads first, then devices, streams and lanes in order. Empty and
// inverted intervals are left out.
std::vector<Track> make_tracks(const Timeline& timeline, std::int32_t rank);

}  // namespace bench::profiling
