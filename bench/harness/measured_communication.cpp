#include "bench/harness/measured_communication.hpp"

#include "bench/core/communication_sample.hpp"
#include "bench/core/units.hpp"
#include "bench/harness/sample_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace bench {
namespace {

// Sums over all timed steps of one rank.
struct RankTotals {
  double compute_ms = 0;
  double communication_ms = 0;
  double exposed_ms = 0;
  bool compute_known = true;
};

struct Totals {
  double step_ms = 0;  // a step has ended when its last rank has
  std::map<int, RankTotals> ranks;
  std::vector<std::vector<double>> all_reduce_ms;  // by order of issue, of all steps and ranks
};

void add(const CommunicationSample& sample, int rank_index, Totals& totals) {
  RankTotals& rank = totals.ranks[rank_index];
  rank.compute_ms += sample.compute_ms.value_or(0);
  rank.communication_ms += sample.communication_ms;
  rank.exposed_ms += sample.exposed_ms;
  rank.compute_known &= sample.compute_ms.has_value();
  for (std::size_t i = 0; i < sample.all_reduce_ms.size(); ++i) {
    if (totals.all_reduce_ms.size() <= i) totals.all_reduce_ms.emplace_back();
    totals.all_reduce_ms[i].push_back(sample.all_reduce_ms[i]);
  }
}

// Nothing where some step was not timed.
Totals totals_of(const std::vector<JobOutcome>& repetitions) {
  Totals totals;
  for (const JobOutcome& outcome : repetitions) {
    if (outcome.status != RankStatus::ok) continue;
    std::vector<StepSample> samples;
    for (const RankReport& report : outcome.reports) {
      samples.insert(samples.end(), report.samples.begin(), report.samples.end());
    }
    for (const StepSample& sample : samples) {
      const auto communication = communication_of(sample);
      if (!communication) return {};
      add(*communication, sample.rank, totals);
    }
    const std::vector<double> steps = step_times_ms(samples);
    totals.step_ms += std::accumulate(steps.begin(), steps.end(), 0.0);
  }
  return totals;
}

// One rank's share of the median step.
DeviceBreakdown breakdown_of(const RankTotals& rank, double step_ms, double median_ms, int gpu) {
  DeviceBreakdown parts;
  parts.device = gpu;
  parts.compute_ms = median_ms * rank.compute_ms / step_ms;
  parts.exposed_communication_ms = median_ms * rank.exposed_ms / step_ms;
  parts.idle_ms = std::max(0.0, median_ms - parts.compute_ms - parts.exposed_communication_ms);
  return parts;
}

// "25.0 MiB in 31.2 ms, 19.6 MiB in 12.3 ms": medians, in order of issue.
std::string all_reduces_text(const Totals& totals, const RankReport& report) {
  std::string text;
  for (std::size_t i = 0; i < totals.all_reduce_ms.size(); ++i) {
    const auto bytes = report.counters.find("bucket_bytes_" + std::to_string(i));
    const std::string size = bytes == report.counters.end()
                                 ? "a map of used parameters"
                                 : format_bytes(static_cast<std::uint64_t>(bytes->second));
    text += fmt::format("{}{} in {:.3g} ms", text.empty() ? "" : ", ", size,
                        quantile(totals.all_reduce_ms[i], 0.5));
  }
  return text;
}

}  // namespace

void add_measured_communication(CaseResult& result, const std::vector<JobOutcome>& repetitions) {
  const Totals totals = totals_of(repetitions);
  if (totals.ranks.empty() || totals.step_ms <= 0) return;
  double compute = 0, exposed = 0, communication = 0;
  bool compute_known = true;
  for (const auto& [rank, sums] : totals.ranks) {
    compute += sums.compute_ms;
    exposed += sums.exposed_ms;
    communication += sums.communication_ms;
    compute_known &= sums.compute_known;
  }
  const double device_ms = totals.step_ms * static_cast<double>(totals.ranks.size());
  result.metrics["comm_exposed"] = exposed / device_ms;
  result.metrics["comm_overlap"] = communication > 0 ? 1 - exposed / communication : 1;
  if (const std::string text = all_reduces_text(totals, repetitions[0].reports.at(0));
      !text.empty()) {
    result.facts["all_reduces"] = text;
  }
  if (!compute_known) return;
  result.metrics["compute_busy"] = compute / device_ms;
  for (const auto& [rank, sums] : totals.ranks) {
    if (static_cast<std::size_t>(rank) >= result.work.gpus.size()) continue;
    const int gpu = result.work.gpus[static_cast<std::size_t>(rank)];
    const DeviceBreakdown parts = breakdown_of(sums, totals.step_ms, result.samples.p50_ms, gpu);
    result.breakdown.push_back(parts);
    result.metrics["idle_gpu" + std::to_string(gpu)] = parts.idle_ms / result.samples.p50_ms;
  }
}

}  // namespace bench
