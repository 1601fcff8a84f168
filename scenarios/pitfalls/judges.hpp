// The judges of dynamic evidence, and the prices of the laboratory's trials. Each lives in the file
// that is named after its rule.
#pragma once

#include "scenarios/pitfalls/laboratory.hpp"
#include "scenarios/pitfalls/run_evidence.hpp"

namespace bench::pitfalls {

void judge_batch_not_divisible_by_gpus(const RunEvidence& run, RunReport& report);
Price price_batch_not_divisible_by_gpus(const RunEvidence& broken, const RunEvidence& cured);

void judge_unused_parameters(const RunEvidence& run, RunReport& report);
Price price_unused_parameters(const RunEvidence& broken, const RunEvidence& cured);

void judge_uneven_batches_per_rank(const RunEvidence& run, RunReport& report);
Price price_uneven_batches_per_rank(const RunEvidence& broken, const RunEvidence& cured);

void judge_missing_set_epoch(const RunEvidence& run, RunReport& report);
Price price_missing_set_epoch(const RunEvidence& broken, const RunEvidence& cured);

}  // namespace bench::pitfalls
