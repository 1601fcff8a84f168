#include "bench/harness/verifier.hpp"

#include "bench/harness/verification.hpp"

#include <optional>
#include <vector>

namespace bench {
namespace {

using State = Verification::State;

std::vector<Fingerprint> fingerprints(const JobOutcome& outcome) {
  std::vector<Fingerprint> prints;
  for (const RankReport& report : outcome.reports) prints.push_back(report.fingerprint);
  return prints;
}

// A job that gave no fingerprint; nullopt when it did.
std::optional<Verification> without_result(const JobOutcome& outcome, const std::string& which) {
  if (outcome.interrupted) return Verification{State::interrupted, "interrupted"};
  switch (outcome.status) {
    case RankStatus::ok:
      return std::nullopt;
    case RankStatus::skip:
    case RankStatus::out_of_memory:
      return Verification{State::skipped, outcome.message};
    case RankStatus::error:
      return Verification{State::failed, which + ": " + outcome.message};
  }
  return std::nullopt;
}

}  // namespace

Verification verified_as_reference() { return {State::equal, "is the single-device reference"}; }

Verification judge(const Case& work, const JobOutcome& verify, const JobOutcome& reference) {
  if (auto missing = without_result(verify, "verification")) return *missing;
  if (reference.status == RankStatus::out_of_memory) {
    return {State::reference_too_large, reference.message};
  }
  if (auto missing = without_result(reference, "single-device reference")) return *missing;
  const Job job = verify_job(work);
  const Verdict verdict = compare(fingerprints(verify), reference.reports.at(0).fingerprint,
                                  samples_per_rank(job.work));
  std::string text = verdict.text;
  if (job.twin) text += " (reduced model, batch " + std::to_string(job.work.batch) + ")";
  return {verdict.equal ? State::equal : State::wrong, text};
}

void apply(const Verification& verification, CaseResult& result) {
  // A case that gave no figures has said why.
  if (result.status != CaseStatus::done) return;
  result.verification = verification.text;
  switch (verification.state) {
    case State::equal:
      result.metrics["verified"] = 1;
      return;
    case State::wrong:
      result.status = CaseStatus::wrong;
      break;
    case State::failed:
    case State::interrupted:
      result.status = CaseStatus::failed;
      break;
    case State::skipped:
    case State::reference_too_large:
      result.status = CaseStatus::skipped;
      break;
  }
  // No figures without verification.
  result.message = verification.text;
  result.metrics.clear();
  result.phase_ms.clear();
  result.breakdown.clear();
  result.samples = SampleSummary{};
}

}  // namespace bench
