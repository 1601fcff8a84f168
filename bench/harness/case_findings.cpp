#include "bench/harness/case_findings.hpp"

#include "bench/core/strategy.hpp"
#include "bench/harness/verification.hpp"

namespace bench {
namespace {

using pitfalls::Finding;
using pitfalls::Json;

// A report names a rule once per case.
constexpr const char* kFact = "findings";

Json memory_evidence(const CaseResult& result) {
  Json rank = Json::object();
  for (const DeviceMemory& memory : result.memory) {
    rank["peak_bytes"].push_back(memory.peak_bytes);
    rank["peak_categories"].push_back(memory.by_category);
  }
  return rank;
}

}  // namespace

pitfalls::RunEvidence evidence_of(const CaseResult& result) {
  const Case& work = result.work;
  Json rank = memory_evidence(result);
  rank["batch"] = work.batch;
  if (work.device_memory_bytes > 0) rank["memory_limit_bytes"] = work.device_memory_bytes;
  if (work.strategy == Strategy::data_parallel && work.accumulation == 1)
    rank["shards"] = strategy_chunks(work);
  if (work.strategy == Strategy::distributed)
    rank["find_unused_parameters"] = work.ddp.find_unused_parameters;
  return pitfalls::RunEvidence(Json{{"name", result.name()},
                                    {"strategy", strategy_name(work.strategy)},
                                    {"gpus", work.world_size()},
                                    {"ranks", Json::array({std::move(rank)})}});
}

std::vector<Finding> case_findings(const CaseResult& result) {
  if (result.status != CaseStatus::done || !result.work.pitfall.empty()) return {};
  return pitfalls::judge_run(evidence_of(result));
}

std::vector<Finding> run_findings(const RunResult& run) {
  std::vector<Finding> all;
  for (const CaseResult& result : run.cases) {
    for (Finding& finding : case_findings(result)) {
      finding.excerpt = finding.file;  // the case; the file is where its figures are
      finding.message = finding.file + ": " + finding.message;
      finding.file = "results.json";
      all.push_back(std::move(finding));
    }
  }
  return all;
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += (text.empty() ? "" : "; ") + finding.rule + " " + finding.name + ": " + finding.message;
  return text;
}

void add_findings(CaseResult& result) {
  const std::string text = findings_text(case_findings(result));
  if (!text.empty()) result.facts[kFact] = text;
}

}  // namespace bench
