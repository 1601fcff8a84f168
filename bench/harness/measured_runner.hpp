// Runs the cases whose time is measured on real devices, one job at a time, so that nothing of ours
// competes with what is timed.
#pragma once

#include "bench/core/case_result.hpp"
#include "bench/harness/verification_book.hpp"
#include "bench/launch/job_runner.hpp"
#include "bench/plan/plan.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bench {

class MeasuredRunner {
 public:
  MeasuredRunner(LaunchSettings launch, std::vector<PlannedCase> cases)
      : runner_(std::move(launch)), cases_(std::move(cases)), repetitions_(cases_.size()) {}

  // Verifies the case on the first call, then measures it; later calls measure it again and pool
  // the steps. nullopt: interrupted.
  std::optional<CaseResult> measure(std::size_t index);
  // Raw samples of all repetitions so far.
  std::vector<StepSample> samples(std::size_t index) const;

 private:
  Verification verify(const Case& work);
  Verification run_verification(const Case& work, const std::string& label);
  std::optional<JobOutcome> search(PlannedCase& planned, const std::string& label);

  JobRunner runner_;
  std::vector<PlannedCase> cases_;
  std::vector<std::vector<JobOutcome>> repetitions_;
  std::map<std::string, Verification> verified_;  // by verification_group
  std::map<std::size_t, std::map<std::string, std::string>> search_facts_;
};

}  // namespace bench
