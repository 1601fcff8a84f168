// Readings of the clock that tell how long a run has been going, and no speed.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// All that is taken off by the reading is told in minutes or hours: (time.time() - start) / 3600,
// timedelta(seconds=time.time() - start).
bool is_told_in_hours(const Program& program, const CallRef& start);

}  // namespace bench::pitfalls
