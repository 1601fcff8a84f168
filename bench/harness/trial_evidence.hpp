// From what a worker's ranks wrote and how they ended to the evidence that rules judge.
#pragma once

#include "bench/launch/job_runner.hpp"
#include "scenarios/pitfalls/laboratory/laboratory.hpp"

#include <filesystem>
#include <string>

namespace bench {

// How long a rank of a trial may be silent before it is taken for hung: far longer than the start
// of a worker on a loaded machine, far shorter than a user's patience.
inline constexpr std::chrono::milliseconds kTrialSilence{5'000};

// The job that runs one side of a trial; its ranks write next to `evidence_file`.
Job trial_job(const pitfalls::Trial& trial, bool cured, std::uint64_t seed,
              const std::filesystem::path& evidence_file);

// Reads and removes the ranks' files, and writes the whole to <evidence_file>.json.
pitfalls::RunEvidence gather_evidence(const Job& job, const JobOutcome& outcome);

}  // namespace bench
