#include "report/hints.hpp"

#include "bench/core/metric_catalog.hpp"
#include "bench/core/units.hpp"
#include "report/case_tables.hpp"
#include "report/headline.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bench::report {
namespace {

// Below these a hint would be noise rather than news.
constexpr double kImbalanceWorthSaying = 1.1;
constexpr double kExposedWorthSaying = 0.2;
constexpr double kFullWorthSaying = 0.9;
constexpr std::uint64_t kShareDivisor = 4;  // a category that explains a quarter of an excess

std::string percent(double ratio) { return fmt::format("{:.0f} %", ratio * 100); }

std::uint64_t category(const DeviceMemory& memory, const char* name) {
  const auto found = memory.by_category.find(name);
  return found == memory.by_category.end() ? 0 : found->second;
}

// What the primary GPU of DataParallel holds that the others do not, by category.
std::string primary_excess(const RunResult& run) {
  const auto best = headline(run);
  if (!best) return {};
  const CaseResult& dp = *best->any_data_parallel();
  if (dp.memory.size() < 2 || !(dp.metric("primary_imbalance") >= kImbalanceWorthSaying)) return {};
  const DeviceMemory& primary = dp.memory[0];
  const DeviceMemory& other = dp.memory[1];
  if (primary.peak_bytes <= other.peak_bytes) return {};
  const std::uint64_t excess = primary.peak_bytes - other.peak_bytes;
  std::string parts;
  for (const auto& [name, bytes] : primary.by_category) {
    const std::uint64_t others = category(other, name.c_str());
    if (bytes <= others || bytes - others < excess / kShareDivisor) continue;
    parts += fmt::format("{}{} of {}", parts.empty() ? "" : ", ", format_bytes(bytes - others),
                         category_title(name));
  }
  if (parts.empty()) return {};
  return fmt::format("GPU {} holds {} more than GPU {} under {}: {}.", primary.device,
                     format_bytes(excess), other.device, strategy_title(dp.work.strategy), parts);
}

// Several GPUs that are slower than one at the same global batch.
std::string slower_than_one_gpu(const RunResult& run) {
  const CaseResult* worst = nullptr;
  std::size_t count = 0;
  for (const Comparison& c : comparisons(run)) {
    if (c.single == nullptr || c.gpus < 2) continue;
    for (const CaseResult* r : {c.data_parallel, c.libtorch_data_parallel, c.distributed}) {
      if (r == nullptr || !(r->metric("speedup_vs_single") < 1)) continue;
      ++count;
      if (worst == nullptr || r->metric("speedup_vs_single") < worst->metric("speedup_vs_single")) {
        worst = r;
      }
    }
  }
  if (worst == nullptr) return {};
  return fmt::format(
      "{} case{} with several GPUs {} slower than one GPU; the slowest reaches {} of "
      "it ({}).",
      count, count == 1 ? "" : "s", count == 1 ? "is" : "are",
      format_metric(MetricHint::factor, worst->metric("speedup_vs_single")),
      case_text(worst->work));
}

std::string exposed_communication(const RunResult& run) {
  const auto best = headline(run);
  if (!best || !(best->distributed->metric("comm_exposed") >= kExposedWorthSaying)) return {};
  return fmt::format("DDP waits for communication in {} of its step; compute hides {} of it ({}).",
                     percent(best->distributed->metric("comm_exposed")),
                     percent(best->distributed->metric("comm_overlap")),
                     case_text(best->distributed->work));
}

std::string nearly_full(const RunResult& run) {
  const CaseResult* fullest = nullptr;
  double most = kFullWorthSaying;
  for (const CaseResult& r : run.cases) {
    // A search for the largest batch fills the GPU on purpose.
    if (r.status != CaseStatus::done || is_search_result(r)) continue;
    if (r.work.reference_only || r.work.device_memory_bytes == 0 || r.memory.empty()) continue;
    const double full = static_cast<double>(r.memory[0].peak_bytes) /
                        static_cast<double>(r.work.device_memory_bytes);
    if (full < most) continue;
    most = full;
    fullest = &r;
  }
  if (fullest == nullptr) return {};
  return fmt::format("GPU {} is {} full at its peak ({}).", fullest->memory[0].device,
                     percent(most), case_text(fullest->work));
}

// What fills the GPU at the largest batch of each strategy, and why the next batch failed, in the
// allocator's own words.
std::string batch_limits(const RunResult& run) {
  std::string parts;
  for (const CaseResult& r : run.cases) {
    if (r.status != CaseStatus::done || !is_search_result(r)) continue;
    const auto limit = r.facts.find("batch_limit");
    const std::string holder = limit == r.facts.end() ? "" : limit->second + "; ";
    parts += fmt::format("{}{} {}: {}{}", parts.empty() ? "" : ". ", r.work.model.name,
                         strategy_title(r.work.strategy), holder, r.facts.at("next_batch"));
  }
  return parts.empty() ? parts : "At the largest batch: " + parts + ".";
}

// Why figures are missing: CUDA events tell when a stream waits, not when it idles, and replicas
// copy without a collective that could be timed.
std::string not_measured(const RunResult& run) {
  const bool missing = std::any_of(run.cases.begin(), run.cases.end(), [](const CaseResult& r) {
    return r.status == CaseStatus::done && !r.simulated && !r.metrics.contains("compute_busy");
  });
  if (!missing) return {};
  return "Not measured on real GPUs: busy and idle time, and how much communication DataParallel "
         "exposes or hides. Step and phase times are.";
}

// What each bucket of DistributedDataParallel took on a real device.
std::string measured_all_reduces(const RunResult& run) {
  constexpr std::size_t kShown = 3;
  std::string parts;
  std::size_t count = 0;
  for (const CaseResult& r : run.cases) {
    const auto all_reduces = r.facts.find("all_reduces");
    if (r.status != CaseStatus::done || all_reduces == r.facts.end()) continue;
    if (++count > kShown) continue;
    parts +=
        fmt::format("{}{}: {}", parts.empty() ? "" : "; ", case_text(r.work), all_reduces->second);
  }
  if (count > kShown) parts += fmt::format("; and {} more cases", count - kShown);
  return parts.empty() ? parts : "All-reduces, median from issue to end: " + parts + ".";
}

// What the rules of the pitfalls found: the first case in full, how many more there are.
std::string rule_findings(const RunResult& run) {
  std::size_t cases = 0;
  const CaseResult* first = nullptr;
  for (const CaseResult& r : run.cases) {
    if (!r.facts.contains("findings")) continue;
    if (first == nullptr) first = &r;
    ++cases;
  }
  if (first == nullptr) return {};
  const std::string where = case_text(first->work);
  const std::string others = cases > 1 ? fmt::format(" and {} more cases", cases - 1) : "";
  return fmt::format("Rules found in {}{}: {}. All of them: findings.sarif.", where, others,
                     first->facts.at("findings"));
}

constexpr std::string (*kHints[])(const RunResult&) = {
    primary_excess, slower_than_one_gpu,  exposed_communication, nearly_full,
    batch_limits,   measured_all_reduces, not_measured,          rule_findings};

}  // namespace

std::vector<std::string> hints(const RunResult& run) {
  std::vector<std::string> sentences;
  for (const auto hint : kHints) {
    if (std::string sentence = hint(run); !sentence.empty()) {
      sentences.push_back(std::move(sentence));
    }
  }
  return sentences;
}

}  // namespace bench::report
