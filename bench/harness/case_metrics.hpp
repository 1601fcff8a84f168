// From what workers report to the figures of a case: the simulated way (operation graph, machine,
// timeline) and the measured way (samples and allocator peaks).
#pragma once

#include "bench/core/case_result.hpp"
#include "bench/launch/job_runner.hpp"
#include "simulator/anchor.hpp"
#include "simulator/machine.hpp"

#include "profiling/timeline.hpp"

#include <optional>
#include <string>
#include <vector>

namespace bench {

// Status, message and facts of a case from what its job came to; `done` still lacks its figures.
CaseResult result_of_outcome(const Case& work, const JobOutcome& outcome);

struct SimulatedStep {
  CaseResult result;
  profiling::Timeline timeline;
};

// Reads the graph that a record job wrote and simulates it. Throws UsageError on a broken graph.
SimulatedStep simulated_result(const Case& work, const JobOutcome& outcome,
                               const std::string& graph_file, const simulator::Machine& machine,
                               const simulator::Anchor& anchor);

// `repetitions` are the outcomes of the measure job, run once or several times; steps are pooled.
CaseResult measured_result(const Case& work, const std::vector<JobOutcome>& repetitions);

// peak_bytes_gpu<i> and primary_imbalance from result.memory.
void add_memory_metrics(CaseResult& result);

}  // namespace bench
