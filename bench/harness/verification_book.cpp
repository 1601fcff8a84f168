#include "bench/harness/verification_book.hpp"

#include "bench/core/case_json.hpp"
#include "bench/core/strategy.hpp"
#include "bench/harness/verification.hpp"

#include <utility>

namespace bench {

std::vector<Job> VerificationBook::add(const Case& work) {
  std::vector<Job> needed;
  if (work.strategy == Strategy::single) return needed;
  const Job verify = verify_job(work);
  const Job reference = reference_job(work);
  const Group group{job_to_json(verify), job_to_json(reference)};
  if (!groups_.emplace(verification_group(work), group).second) return needed;
  if (outcomes_.emplace(group.reference, std::nullopt).second) needed.push_back(reference);
  if (outcomes_.emplace(group.verify, std::nullopt).second) needed.push_back(verify);
  return needed;
}

void VerificationBook::put(const Job& job, JobOutcome outcome) {
  outcomes_[job_to_json(job)] = std::move(outcome);
}

std::optional<Verification> VerificationBook::verdict(const Case& work) const {
  if (work.strategy == Strategy::single) return verified_as_reference();
  const Group& group = groups_.at(verification_group(work));
  const auto& verify = outcomes_.at(group.verify);
  const auto& reference = outcomes_.at(group.reference);
  if (!verify || !reference) return std::nullopt;
  return judge(work, *verify, *reference);
}

}  // namespace bench
