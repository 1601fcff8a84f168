#include "bench/core/metric_catalog.hpp"

#include "bench/core/units.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace bench {
namespace {

using Hint = MetricHint;
using Better = MetricBetter;

constexpr MetricEntry kMetrics[] = {
    {"items_per_second", "throughput", Hint::rate, Better::higher,
     "Samples per second over all GPUs: the global batch divided by the median step time."},
    {"step_ms_p50", "step", Hint::duration_ms, Better::lower,
     "Median time of one optimizer step. Also the case's real_time."},
    {"step_ms_p10", "step p10", Hint::duration_ms, Better::lower,
     "Step time that one step in ten stays below: the undisturbed machine."},
    {"step_ms_p90", "step p90", Hint::duration_ms, Better::lower,
     "Step time that nine steps in ten stay below: what stragglers and jitter cost."},
    {"speedup_vs_single", "speed-up", Hint::factor, Better::higher,
     "Throughput divided by that of the single-device run at the same global batch, or, where that "
     "batch does not fit on one GPU, at the same batch per GPU."},
    {"scaling_efficiency", "efficiency", Hint::ratio, Better::higher,
     "Throughput divided by GPUs times the single-device throughput at the same batch per GPU. 1 "
     "is "
     "perfect weak scaling."},
    {"peak_bytes_gpu<i>", "peak GPU <i>", Hint::bytes, Better::lower,
     "Peak memory of GPU i as its allocator counts it, in bytes, over the warm-up and timed "
     "steps."},
    {"primary_imbalance", "imbalance", Hint::factor, Better::lower,
     "Peak memory of the primary GPU divided by the mean peak of the others; 1 for one GPU. "
     "DataParallel keeps outputs, gradients and optimizer state on the primary GPU."},
    {"compute_busy", "compute", Hint::ratio, Better::higher,
     "Fraction of the step in which a GPU computes, mean over GPUs. Measured on a CPU: processor "
     "time "
     "of the thread that trains. CUDA events do not tell."},
    {"comm_exposed", "exposed comm", Hint::ratio, Better::lower,
     "Fraction of the step in which communication runs and compute does not, mean over GPUs. "
     "Measured "
     "on CUDA: compute is taken to run until the last all-reduce is issued."},
    {"comm_overlap", "overlap", Hint::ratio, Better::higher,
     "Fraction of the communication time that compute hides; 1 where nothing is communicated."},
    {"idle_gpu<i>", "idle GPU <i>", Hint::ratio, Better::lower,
     "Fraction of the step in which GPU i neither computes nor communicates nor copies."},
    {"bytes_communicated", "communicated", Hint::bytes, Better::lower,
     "Bytes that the GPUs send each other in one step, summed over GPUs: copies, and what the "
     "collectives move."},
    {"reproduced", "reproduced", Hint::flag, Better::higher,
     "Scenario pitfalls: 1 when the broken run shows the mistake's effect."},
    {"detected", "detected", Hint::flag, Better::higher,
     "Scenario pitfalls: 1 when the rule finds the mistake from the evidence of that run alone."},
    {"cured", "cured", Hint::flag, Better::higher,
     "Scenario pitfalls: 1 when the effect is gone in the cured run and no rule finds anything."},
    {"cost", "cost", Hint::count, Better::lower,
     "Scenario pitfalls: what the mistake costs; the case's label has the unit."},
    {"verified", "verified", Hint::flag, Better::higher,
     "1 when losses and parameters equal those of the single-device run within the tolerance that "
     "the arithmetic justifies, else 0. Times of a case that differs are withheld."},
};

// Where "<i>" starts in a catalogue name; npos for plain names.
std::size_t index_hole(std::string_view name) { return name.find("<i>"); }

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t hole = index_hole(pattern);
  if (hole == std::string_view::npos) return pattern == name;
  const std::string_view prefix = pattern.substr(0, hole);
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
  const std::string_view index = name.substr(prefix.size());
  return std::all_of(index.begin(), index.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::string with_digits(double value, int decimals) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

// "41 %", "4.1 %"; what is there but rounds to nothing says so.
std::string percentage(double ratio) {
  const double percent = ratio * 100;
  if (ratio != 0 && std::fabs(percent) < 0.05) return percent > 0 ? "<0.1 %" : ">-0.1 %";
  return with_digits(percent, ratio != 0 && std::fabs(percent) < 9.95 ? 1 : 0) + " %";
}

}  // namespace

const char* metric_hint_name(MetricHint hint) {
  constexpr const char* kNames[] = {"duration (ms)", "bytes", "ratio",        "factor",
                                    "rate (/s)",     "count", "flag (0 or 1)"};
  return kNames[static_cast<int>(hint)];
}

const char* metric_better_name(MetricBetter better) {
  constexpr const char* kNames[] = {"higher", "lower", "neither"};
  return kNames[static_cast<int>(better)];
}

std::span<const MetricEntry> metric_catalog() { return kMetrics; }

const MetricEntry* find_metric(std::string_view name) {
  for (const MetricEntry& entry : kMetrics) {
    if (matches(entry.name, name)) return &entry;
  }
  return nullptr;
}

std::string format_metric(MetricHint hint, double value) {
  if (std::isnan(value)) return "-";
  switch (hint) {
    case MetricHint::duration_ms:
      return format_duration_ns(static_cast<std::int64_t>(std::llround(value * 1e6)));
    case MetricHint::bytes:
      return format_bytes(static_cast<std::uint64_t>(std::max(0.0, value)));
    case MetricHint::ratio:
      return percentage(value);
    case MetricHint::factor:
      return with_digits(value, 2) + "x";
    case MetricHint::rate:
      return format_count(value) + (value < 1e3 ? " /s" : "/s");
    case MetricHint::count:
      return with_digits(value, value == std::floor(value) ? 0 : 2);
    case MetricHint::flag:
      return value != 0 ? "yes" : "no";
  }
  return {};
}

}  // namespace bench
