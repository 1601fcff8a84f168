// No timing without verification: what is run to check a case, and when two runs are equal. Pure
// functions; verifier.hpp runs the jobs.
//
// The strategy under test and the single-device reference see the same samples in the same chunks,
// so the only difference that correct programs may show is the order of additions, in float64.
#pragma once

#include "bench/core/job.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// Optimizer steps of a verification. Two would show a wrong update; the third runs on gradient
// buckets that DistributedDataParallel rebuilds after the first step.
inline constexpr int kVerifySteps = 3;

// Cases of one group share a verification: model, strategy, GPUs and options are the same. Where
// the case itself is verified (not its reduced twin), the batch belongs to the group as well.
std::string verification_group(const Case& work);
// True for cases that run in shape execution: their reduced twin is verified, with a small batch.
bool verified_by_twin(const Case& work);

// The case with a batch that is small enough for one device and cut as unevenly as the case's own.
Case with_small_batch(const Case& work);

// The jobs whose fingerprints must agree. A single-device case is its own reference.
Job verify_job(const Case& work);
Job reference_job(const Case& work);

// How a strategy cuts one optimizer step into pieces that pass through the model separately:
// micro-batches, then Python's torch.chunk (data_parallel) or one slice per rank (distributed).
std::vector<std::int64_t> strategy_chunks(const Case& work);

// Largest relative difference that rounding explains after `step` optimizer steps (0 = before the
// first update). See verification.cpp for the derivation.
double rounding_tolerance(int step);

struct Verdict {
  bool equal = false;
  std::string text;    // "equals single within 3e-07", or what differs where
  double largest = 0;  // largest relative difference of losses and of parameter changes
};
// `ranks` are the fingerprints of every rank of the verify job.
Verdict compare(const std::vector<Fingerprint>& ranks, const Fingerprint& reference,
                const std::vector<std::int64_t>& rank_samples);
// Samples per rank of a verify job, the weights of their losses.
std::vector<std::int64_t> samples_per_rank(const Case& work);

}  // namespace bench
