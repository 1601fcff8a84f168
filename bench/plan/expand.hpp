// From settings and devices to cases: every combination of the axes that makes sense, the
// single-GPU references that scaling efficiency and speed-up are computed from, and skips with
// their reasons.
#pragma once

#include "bench/plan/devices.hpp"
#include "bench/plan/plan.hpp"
#include "bench/plan/settings.hpp"

#include <string>
#include <vector>

namespace bench {

// `gpus` are the selected devices in order. Throws UsageError where the settings contradict each
// other or ask, by their only value, for a batch that cannot be cut.
Plan make_plan(const Settings& settings, const Devices& devices, const std::vector<int>& gpus);

// Numbers of GPUs that `strategy` visits out of `available`, ascending.
std::vector<int> gpu_counts(const Settings& settings, Strategy strategy, int available);

}  // namespace bench
