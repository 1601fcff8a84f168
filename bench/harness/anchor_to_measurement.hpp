// --measured-single: the factors that make the simulated single-device step of a plan equal what a
// user measured, found by recording that step once.
#pragma once

#include "bench/launch/job_runner.hpp"
#include "bench/plan/plan.hpp"
#include "simulator/anchor.hpp"

#include <filesystem>

namespace bench {

// The single-device case that the measurement is of. Throws UsageError unless the plan has exactly
// one that was asked for.
const Case& measured_case(const Plan& plan);

// Records that case in `directory` and solves for the factors. Throws MachineError when it cannot
// be recorded, UsageError when no factor reaches the measurement.
simulator::Anchor anchor_to_measurement(const Plan& plan, double step_ms, const JobRunner& runner,
                                        const std::filesystem::path& directory);

}  // namespace bench
