// The rules of the pitfalls, over the evidence of an ordinary case: the same judges that the
// laboratory tries read every run of every scenario.
#pragma once

#include "bench/core/case_result.hpp"
#include "scenarios/pitfalls/laboratory/run_evidence.hpp"

#include <string>
#include <vector>

namespace bench {

// What a finished case shows, in the laboratory's vocabulary.
pitfalls::RunEvidence evidence_of(const CaseResult& result);

// Findings in a finished case; none in one that has no result.
std::vector<pitfalls::Finding> case_findings(const CaseResult& result);

// The findings of all cases of a run.
std::vector<pitfalls::Finding> run_findings(const RunResult& run);

// "DDP001 unused-parameters: ..." of all, in one line.
std::string findings_text(const std::vector<pitfalls::Finding>& findings);

// Puts them into the result's facts, where the report finds them.
void add_findings(CaseResult& result);

}  // namespace bench
