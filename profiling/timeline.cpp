#include "profiling/timeline.hpp"

namespace bench::profiling {

const char* interval_kind_name(IntervalKind kind) {
  constexpr const char* kNames[] = {"compute", "copy", "collective", "host", "wait"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace bench::profiling
