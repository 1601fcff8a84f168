// The results of a run while it goes on: in the order of the plan, with the metrics that relate
// cases to each other, written to the output directory after every case.
#pragma once

#include "bench/core/case_result.hpp"
#include "bench/plan/plan.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bench {

class RunStore {
 public:
  // With `resume`, the finished cases of the results in `out` that the plan still asks for are
  // kept. Throws UsageError where those results are of another scenario or machine.
  RunStore(std::filesystem::path out, const Plan& plan, RunContext context, bool resume);

  bool has(std::size_t index) const { return results_.at(index).has_value(); }
  // Stores a result and its raw samples, and writes results.json and samples.jsonl.
  void put(std::size_t index, CaseResult result, const std::vector<StepSample>& samples);
  // The stored result with its relative metrics; it must be there.
  CaseResult get(std::size_t index) const;
  RunResult run() const;
  // At the end: the report and the combined timeline.
  void finish() const;

 private:
  void keep_finished(const Plan& plan);
  void write() const;

  std::filesystem::path out_;
  RunContext context_;
  std::vector<std::optional<CaseResult>> results_;  // by index in the plan
  std::vector<std::string> samples_;                // lines of samples.jsonl, by index in the plan
};

// The step of a simulated case as the one sample that it is.
std::vector<StepSample> simulated_samples(const CaseResult& result);

}  // namespace bench
