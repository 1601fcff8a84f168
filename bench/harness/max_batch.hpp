// The largest batch of a case that fits into memory, by trying batches in workers, and what stands
// in the way of a larger one.
#pragma once

#include "bench/core/job.hpp"
#include "bench/launch/job_runner.hpp"
#include "bench/plan/plan.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace bench {

struct MaxBatchResult {
  Case work;           // with the batch that was found
  JobOutcome outcome;  // of that batch; of the failed probe where none fits or one broke
  std::map<std::string, std::string> facts;  // for the reader: the limit and what sets it
};

class MaxBatch {
 public:
  // Runs the same case at several batches, ascending; outcomes in the same order. It may stop after
  // the first that is not ok.
  using Probe = std::function<std::vector<JobOutcome>(const std::vector<Case>&)>;

  MaxBatch(PlannedCase planned, int probes_per_round, Probe probe)
      : planned_(std::move(planned)),
        probes_per_round_(probes_per_round),
        probe_(std::move(probe)) {}

  MaxBatchResult run();

 private:
  std::size_t leading_fits(const std::vector<std::int64_t>& batches);
  Case at_batch(std::int64_t batch) const;

  PlannedCase planned_;
  int probes_per_round_;
  Probe probe_;
  std::map<std::int64_t, JobOutcome> outcomes_;
  bool broken_ = false;  // a probe failed for another reason than memory; nothing more is tried
  std::int64_t broken_batch_ = 0;
};

}  // namespace bench
