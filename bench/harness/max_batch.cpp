#include "bench/harness/max_batch.hpp"

#include "bench/harness/batch_search.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bench {
namespace {

// "activations hold 81 % of GPU 0": the fullest GPU and its largest category.
std::string largest_category(const JobOutcome& outcome) {
  const DeviceMemory* fullest = nullptr;
  for (const RankReport& report : outcome.reports) {
    for (const DeviceMemory& memory : report.memory) {
      if (fullest == nullptr || memory.peak_bytes > fullest->peak_bytes) fullest = &memory;
    }
  }
  if (fullest == nullptr || fullest->by_category.empty() || fullest->peak_bytes == 0) return "";
  const auto largest =
      std::max_element(fullest->by_category.begin(), fullest->by_category.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return fmt::format(
      "{} hold {:.0f} % of GPU {}", largest->first,
      100.0 * static_cast<double>(largest->second) / static_cast<double>(fullest->peak_bytes),
      fullest->device);
}

}  // namespace

Case MaxBatch::at_batch(std::int64_t batch) const {
  Case work = planned_.work;
  work.batch = batch;
  return work;
}

std::size_t MaxBatch::leading_fits(const std::vector<std::int64_t>& batches) {
  if (broken_) return 0;
  std::vector<Case> probes;
  for (const std::int64_t batch : batches) probes.push_back(at_batch(batch));
  std::vector<JobOutcome> outcomes = probe_(probes);
  std::size_t fitting = 0;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const RankStatus status = outcomes[i].status;
    if (status == RankStatus::ok && fitting == i) ++fitting;
    if (status == RankStatus::error || status == RankStatus::skip) {
      broken_ = true;
      if (broken_batch_ == 0) broken_batch_ = batches[i];
    }
    outcomes_.insert_or_assign(batches[i], std::move(outcomes[i]));
    if (status != RankStatus::ok) break;
  }
  return fitting;
}

MaxBatchResult MaxBatch::run() {
  const BatchBounds bounds =
      largest_fitting_batch(*planned_.search, probes_per_round_,
                            [&](const std::vector<std::int64_t>& b) { return leading_fits(b); });
  if (broken_) return {at_batch(broken_batch_), outcomes_.at(broken_batch_), {}};
  if (bounds.fits == 0)
    return {at_batch(bounds.does_not_fit), outcomes_.at(bounds.does_not_fit), {}};
  MaxBatchResult result{at_batch(bounds.fits), outcomes_.at(bounds.fits), {}};
  result.facts["batch_search"] = fmt::format("{} to {} by {}", planned_.search->lowest,
                                             planned_.search->highest, planned_.search->multiple);
  const std::string category = largest_category(result.outcome);
  if (!category.empty()) result.facts["batch_limit"] = category;
  if (bounds.does_not_fit > 0) {
    result.facts["next_batch"] = fmt::format("{} does not fit: {}", bounds.does_not_fit,
                                             outcomes_.at(bounds.does_not_fit).message);
  } else {
    result.facts["next_batch"] = "the search ends here; a larger batch may fit";
  }
  return result;
}

}  // namespace bench
