#include "profiling/trace_tracks.hpp"

#include <algorithm>
#include <tuple>

namespace bench::profiling {
namespace {

constexpr const char* kStreamNames[] = {"compute", "communication", "host to device",
                                        "device to host"};

std::string track_name(const Timeline& timeline, const Track& track) {
  std::string name;
  if (track.device < 0) {
    const auto thread = static_cast<std::size_t>(track.stream);
    name = "host " + (thread < timeline.host_threads.size() ? timeline.host_threads[thread]
                                                            : std::to_string(track.stream));
  } else {
    const auto stream = static_cast<std::size_t>(track.stream);
    name = "GPU " + std::to_string(track.device) + " " +
           (stream < std::size(kStreamNames) ? kStreamNames[stream]
                                             : "stream " + std::to_string(track.stream));
  }
  if (track.lane > 0) name += " (" + std::to_string(track.lane + 1) + ")";
  return name;
}

// The first lane of [first, last) whose last interval has ended; appends a lane when all are busy.
Track& free_lane(std::vector<Track>& tracks, std::size_t first, const Interval& interval) {
  for (std::size_t i = first; i < tracks.size(); ++i) {
    if (tracks[i].intervals.back()->end_ns <= interval.begin_ns) return tracks[i];
  }
  Track track{interval.device, interval.stream, static_cast<std::int32_t>(tracks.size() - first)};
  tracks.push_back(std::move(track));
  return tracks.back();
}

}  // namespace

std::vector<Track> make_tracks(const Timeline& timeline, std::int32_t rank) {
  std::vector<const Interval*> sorted;
  for (const Interval& interval : timeline.intervals) {
    if (interval.rank == rank && interval.end_ns > interval.begin_ns) sorted.push_back(&interval);
  }
  const auto key = [](const Interval* i) { return std::tie(i->device, i->stream, i->begin_ns); };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Interval* a, const Interval* b) { return key(a) < key(b); });
  std::vector<Track> tracks;
  std::size_t first_lane = 0;
  for (const Interval* interval : sorted) {
    if (tracks.empty() || tracks.back().device != interval->device ||
        tracks.back().stream != interval->stream) {
      first_lane = tracks.size();
    }
    free_lane(tracks, first_lane, *interval).intervals.push_back(interval);
  }
  for (Track& track : tracks) track.name = track_name(timeline, track);
  return tracks;
}

}  // namespace bench::profiling
