// What communication cost one rank in one measured step. It travels among the named durations of
// StepSample::phase_ms, under names that no phase has; these functions are the only ones that know
// them.
#pragma once

#include "bench/core/job.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct CommunicationSample {
  std::optional<double> compute_ms;   // the device computed; absent where that cannot be told
  double communication_ms = 0;        // at least one collective was on its way
  double exposed_ms = 0;              // and the device did not compute
  std::vector<double> all_reduce_ms;  // each all-reduce from its issue to its end, in order
};

void add_communication(const CommunicationSample& communication, StepSample& sample);
// Nothing where the step's communication was not timed.
std::optional<CommunicationSample> communication_of(const StepSample& sample);
// The phases alone.
std::map<std::string, double> phases_of(const StepSample& sample);

}  // namespace bench
