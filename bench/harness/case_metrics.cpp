#include "bench/harness/case_metrics.hpp"

#include "bench/core/communication_sample.hpp"
#include "bench/core/strategy.hpp"
#include "bench/harness/measured_communication.hpp"
#include "bench/harness/sample_summary.hpp"
#include "simulator/graph_io.hpp"
#include "simulator/simulate.hpp"

#include "profiling/analysis.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace bench {
namespace {

constexpr double kNsPerMs = 1e6;

// One row per GPU of the case. Ranks of a distributed job are symmetric: where only rank 0 was
// recorded, its memory stands for all.
std::vector<DeviceMemory> memory_of_all_gpus(const Case& work,
                                             const std::vector<RankReport>& reports) {
  std::vector<DeviceMemory> memory;
  for (const RankReport& report : reports) {
    memory.insert(memory.end(), report.memory.begin(), report.memory.end());
  }
  if (memory.empty()) return memory;
  if (work.strategy == Strategy::distributed && memory.size() == 1) {
    memory.resize(work.gpus.size(), memory[0]);
  }
  memory.resize(std::min(memory.size(), work.gpus.size()));
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i].device = work.gpus[i];
  return memory;
}

void add_step_metrics(CaseResult& result, const std::vector<double>& step_ms) {
  result.samples = summarize(step_ms);
  result.metrics["step_ms_p10"] = result.samples.p10_ms;
  result.metrics["step_ms_p50"] = result.samples.p50_ms;
  result.metrics["step_ms_p90"] = result.samples.p90_ms;
  if (result.samples.p50_ms > 0) {
    result.metrics["items_per_second"] =
        static_cast<double>(result.work.batch) * 1e3 / result.samples.p50_ms;
  }
}

DeviceBreakdown breakdown_of(const profiling::DeviceMetrics& device, int index) {
  DeviceBreakdown parts;
  parts.device = index;
  parts.compute_ms = static_cast<double>(device.compute_ns) / kNsPerMs;
  parts.exposed_communication_ms = static_cast<double>(device.exposed_communication_ns) / kNsPerMs;
  parts.exposed_copy_ms = static_cast<double>(device.exposed_copy_ns) / kNsPerMs;
  parts.host_ms = static_cast<double>(device.idle_host_ns) / kNsPerMs;
  parts.idle_ms = static_cast<double>(device.idle_ns - device.idle_host_ns) / kNsPerMs;
  return parts;
}

void add_timeline_metrics(CaseResult& result, const profiling::StepMetrics& step) {
  for (const auto& [name, value] : profiling::timeline_counters(step)) {
    if (!name.starts_with("idle_gpu")) result.metrics[name] = value;
  }
  // The timeline counts devices from 0; a case names the GPUs the user listed.
  for (std::size_t i = 0; i < step.devices.size() && i < result.work.gpus.size(); ++i) {
    const profiling::DeviceMetrics& device = step.devices[i];
    const int gpu = result.work.gpus[i];
    result.breakdown.push_back(breakdown_of(device, gpu));
    if (step.step_ns <= 0) continue;
    result.metrics["idle_gpu" + std::to_string(gpu)] =
        static_cast<double>(device.idle_ns) / static_cast<double>(step.step_ns);
  }
  for (int phase = 0; phase < simulator::kPhaseCount; ++phase) {
    const auto ns = step.phase_host_ns[static_cast<std::size_t>(phase)];
    if (ns == 0) continue;
    result.phase_ms[simulator::phase_name(static_cast<simulator::Phase>(phase))] =
        static_cast<double>(ns) / kNsPerMs;
  }
}

// Median over the steps of rank 0, for every phase it told of.
std::map<std::string, double> median_phases(const std::vector<StepSample>& samples) {
  std::map<std::string, std::vector<double>> times;
  for (const StepSample& sample : samples) {
    if (sample.rank != 0) continue;
    for (const auto& [phase, ms] : phases_of(sample)) times[phase].push_back(ms);
  }
  std::map<std::string, double> medians;
  for (const auto& [phase, ms] : times) medians[phase] = quantile(ms, 0.5);
  return medians;
}

// The larger peak of each GPU over the repetitions.
void merge_peaks(std::vector<DeviceMemory>& into, const std::vector<DeviceMemory>& more) {
  if (into.empty()) into = more;
  for (std::size_t i = 0; i < into.size() && i < more.size(); ++i) {
    if (more[i].peak_bytes > into[i].peak_bytes) into[i] = more[i];
  }
}

// What the ranks counted together; nothing where none did and there was something to count.
std::optional<double> bytes_counted(const Case& work, const std::vector<RankReport>& reports) {
  std::optional<double> sum;
  if (work.world_size() == 1) sum = 0;
  for (const RankReport& report : reports) {
    const auto found = report.counters.find("bytes_communicated");
    if (found != report.counters.end()) sum = sum.value_or(0) + found->second;
  }
  return sum;
}

}  // namespace

CaseResult result_of_outcome(const Case& work, const JobOutcome& outcome) {
  CaseResult result;
  result.work = work;
  result.simulated = work.device == DeviceKind::vgpu;
  result.message = outcome.message;
  switch (outcome.status) {
    case RankStatus::ok:
      result.status = CaseStatus::done;
      break;
    case RankStatus::skip:
      result.status = CaseStatus::skipped;
      break;
    case RankStatus::out_of_memory:
      result.status = CaseStatus::skipped;
      break;
    case RankStatus::error:
      result.status = CaseStatus::failed;
      break;
  }
  result.out_of_memory = outcome.status == RankStatus::out_of_memory;
  if (!outcome.reports.empty()) result.facts = outcome.reports[0].facts;
  result.memory = memory_of_all_gpus(work, outcome.reports);
  return result;
}

SimulatedStep simulated_result(const Case& work, const JobOutcome& outcome,
                               const std::string& graph_file, const simulator::Machine& machine,
                               const simulator::Anchor& anchor) {
  SimulatedStep step;
  step.result = result_of_outcome(work, outcome);
  simulator::SimulationOptions options;
  options.gpus = work.gpus;
  options.host = work.host;
  options.seed = work.seed;
  options.kernel_scale = anchor.kernel_scale;
  options.host_scale = anchor.host_scale;
  auto simulated = simulator::simulate(simulator::read_graph(graph_file), machine, options);
  const auto metrics = profiling::analyze(simulated.timeline);
  add_timeline_metrics(step.result, metrics);
  add_step_metrics(step.result, {static_cast<double>(simulated.timeline.step_ns) / kNsPerMs});
  step.result.metrics["bytes_communicated"] = static_cast<double>(simulated.bytes_communicated);
  step.result.error_band = simulated.error.relative;
  if (!simulated.error.reason.empty()) step.result.facts["error_band"] = simulated.error.reason;
  add_memory_metrics(step.result);
  step.timeline = std::move(simulated.timeline);
  return step;
}

CaseResult measured_result(const Case& work, const std::vector<JobOutcome>& repetitions) {
  CaseResult result = result_of_outcome(work, repetitions.at(0));
  std::vector<double> step_ms;
  std::vector<StepSample> samples;
  for (const JobOutcome& outcome : repetitions) {
    if (outcome.status != RankStatus::ok) continue;
    merge_peaks(result.memory, memory_of_all_gpus(work, outcome.reports));
    std::vector<StepSample> own;
    for (const RankReport& report : outcome.reports) {
      own.insert(own.end(), report.samples.begin(), report.samples.end());
    }
    const auto times = step_times_ms(own);
    step_ms.insert(step_ms.end(), times.begin(), times.end());
    samples.insert(samples.end(), own.begin(), own.end());
  }
  if (result.status != CaseStatus::done) return result;
  add_step_metrics(result, step_ms);
  result.phase_ms = median_phases(samples);
  add_measured_communication(result, repetitions);
  if (const auto bytes = bytes_counted(work, repetitions[0].reports)) {
    result.metrics["bytes_communicated"] = *bytes;
  }
  add_memory_metrics(result);
  return result;
}

void add_memory_metrics(CaseResult& result) {
  if (result.memory.empty()) return;
  double others = 0;
  for (std::size_t i = 0; i < result.memory.size(); ++i) {
    const auto peak = static_cast<double>(result.memory[i].peak_bytes);
    result.metrics["peak_bytes_gpu" + std::to_string(result.memory[i].device)] = peak;
    if (i > 0) others += peak;
  }
  const auto count = static_cast<double>(result.memory.size() - 1);
  const auto primary = static_cast<double>(result.memory[0].peak_bytes);
  if (count == 0) {
    result.metrics["primary_imbalance"] = 1;
  } else if (others > 0) {
    result.metrics["primary_imbalance"] = primary / (others / count);
  }
}

}  // namespace bench
