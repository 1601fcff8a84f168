#include "tests/golden/sample_run.hpp"

#include "bench/core/relative_metrics.hpp"
#include "bench/core/strategy.hpp"
#include "bench/core/units.hpp"

#include <algorithm>
#include <string>

namespace bench::report {
namespace {

using profiling::Interval;
using profiling::IntervalKind;
using profiling::Timeline;
using simulator::Phase;

// The toy cost model: milliseconds per sample and per step, bytes of parameters.
struct ToyModel {
  const char* name;
  double ms_per_sample;
  double parameter_mib;
  double activation_mib_per_sample;
};

constexpr ToyModel kModels[] = {{"resnet18", 0.25, 45, 30}, {"resnet50", 0.75, 98, 90}};
constexpr double kLinkMsPerMib = 0.12;
constexpr double kDeviceMib = 16384;

std::uint64_t mib(double value) { return static_cast<std::uint64_t>(value * 1024) * kKiB; }

Case toy_case(const ToyModel& model, Strategy strategy, int gpus, std::int64_t batch) {
  Case work;
  work.scenario = "dp_vs_ddp";
  work.model.name = model.name;
  work.strategy = strategy;
  work.gpus.clear();
  for (int gpu = 0; gpu < gpus; ++gpu) work.gpus.push_back(gpu);
  work.batch = batch;
  work.machine = "4xv100-sxm2";
  work.device_memory_bytes = mib(kDeviceMib);
  return work;
}

DeviceMemory toy_memory(const ToyModel& model, Strategy strategy, int device, double samples,
                        double all_samples) {
  DeviceMemory memory;
  memory.device = device;
  const bool primary = device == 0 || strategy == Strategy::distributed;
  memory.by_category["parameters"] = mib(model.parameter_mib);
  memory.by_category["activations"] = mib(model.activation_mib_per_sample * samples);
  memory.by_category["inputs"] = mib(0.574 * samples);
  if (primary) {
    memory.by_category["gradients"] = mib(model.parameter_mib);
    memory.by_category["optimizer_state"] = mib(model.parameter_mib);
  }
  if (strategy == Strategy::distributed) memory.by_category["buckets"] = mib(model.parameter_mib);
  if (strategy == Strategy::data_parallel && device == 0) {
    memory.by_category["gathered_outputs"] = mib(8 * all_samples);
  }
  for (const auto& [category, bytes] : memory.by_category) memory.peak_bytes += bytes;
  return memory;
}

// compute, exposed communication, exposed copy, host, idle of the primary device and of another.
struct ToyStep {
  DeviceBreakdown primary, other;
  double total() const {
    return primary.compute_ms + primary.exposed_communication_ms + primary.exposed_copy_ms +
           primary.host_ms + primary.idle_ms;
  }
};

ToyStep toy_step(const ToyModel& model, const Case& work) {
  const double compute = model.ms_per_sample * static_cast<double>(work.batch) / work.world_size();
  const double transfer = model.parameter_mib * kLinkMsPerMib;
  ToyStep step;
  step.primary = {0, compute, 0, 0.5, 1.5, 0};
  if (work.strategy == Strategy::data_parallel) {
    step.primary = {0, compute + 6, 2 * transfer, 0.5, 4, 0};
    step.other = {1, compute, 2 * transfer, 0.5, 4, 6};
  } else if (work.strategy == Strategy::distributed) {
    step.primary.exposed_communication_ms = 0.15 * transfer;
    step.other = step.primary;
  }
  return step;
}

void fill_metrics(CaseResult& result, const ToyStep& step, const ToyModel& model) {
  const double total = step.total();
  const bool dp = result.work.strategy == Strategy::data_parallel;
  const int gpus = result.work.world_size();
  result.samples = {20, total * 0.99, total * 0.995, total, total * 1.02, total * 1.05};
  auto& metrics = result.metrics;
  metrics["items_per_second"] = static_cast<double>(result.work.batch) / total * 1000;
  metrics["step_ms_p10"] = result.samples.p10_ms;
  metrics["step_ms_p50"] = total;
  metrics["step_ms_p90"] = result.samples.p90_ms;
  metrics["compute_busy"] = step.primary.compute_ms / total;
  metrics["comm_exposed"] = step.primary.exposed_communication_ms / total;
  metrics["comm_overlap"] = gpus == 1 ? 1 : dp ? 0.02 : 0.85;
  metrics["bytes_communicated"] =
      gpus == 1 ? 0 : static_cast<double>(mib(model.parameter_mib)) * gpus * (dp ? 2 : 1);
  metrics["verified"] = 1;
  double others = 0;
  for (const DeviceMemory& memory : result.memory) {
    const std::string index = std::to_string(memory.device);
    const DeviceBreakdown& spent = memory.device == 0 ? step.primary : step.other;
    metrics["peak_bytes_gpu" + index] = static_cast<double>(memory.peak_bytes);
    metrics["idle_gpu" + index] = (spent.idle_ms + spent.host_ms) / total;
    if (memory.device > 0) others += static_cast<double>(memory.peak_bytes) / (gpus - 1);
    result.breakdown.push_back(spent);
    result.breakdown.back().device = memory.device;
  }
  metrics["primary_imbalance"] =
      gpus == 1 ? 1 : static_cast<double>(result.memory[0].peak_bytes) / others;
}

CaseResult toy_result(const ToyModel& model, Strategy strategy, int gpus, std::int64_t batch) {
  CaseResult result;
  result.work = toy_case(model, strategy, gpus, batch);
  result.simulated = true;
  result.error_band = 0.1;
  result.facts["error_band"] = "kernels from figures that are specification";
  for (int device = 0; device < gpus; ++device) {
    result.memory.push_back(toy_memory(model, strategy, device, static_cast<double>(batch) / gpus,
                                       static_cast<double>(batch)));
  }
  if (result.memory[0].peak_bytes > result.work.device_memory_bytes) {
    result.status = CaseStatus::skipped;
    result.out_of_memory = true;
    result.message = "GPU 0 has 16.0 GiB; the batch needs " +
                     format_bytes(result.memory[0].peak_bytes) + " at its peak";
    result.memory.clear();
    return result;
  }
  fill_metrics(result, toy_step(model, result.work), model);
  result.verification = "losses and parameters equal single's within 1e-6";
  result.phase_ms = {{"forward", result.samples.p50_ms / 3},
                     {"backward", result.samples.p50_ms / 2}};
  result.real_seconds = 0.25;
  return result;
}

CaseResult troubled(CaseStatus status, std::string message, Strategy strategy, std::int64_t batch) {
  CaseResult result;
  result.work = toy_case(kModels[1], strategy, 4, batch);
  result.simulated = true;
  result.status = status;
  result.message = std::move(message);
  return result;
}

void add(Timeline& timeline, std::int32_t device, std::int32_t stream, IntervalKind kind,
         Phase phase, double begin_ms, double end_ms) {
  Interval interval;
  interval.device = device;
  interval.rank = timeline.ranks > 1 ? std::max(0, device) : 0;
  interval.stream = stream;
  interval.kind = kind;
  interval.phase = phase;
  interval.name = kind == IntervalKind::compute ? 1 : 2;
  interval.begin_ns = static_cast<std::int64_t>(begin_ms * 1e6);
  interval.end_ns = static_cast<std::int64_t>(end_ms * 1e6);
  interval.bytes = 4096;
  timeline.intervals.push_back(interval);
}

Timeline empty_step(std::int32_t ranks, double step_ms) {
  Timeline timeline;
  timeline.simulated = true;
  timeline.ranks = ranks;
  timeline.devices = 4;
  timeline.step_ns = static_cast<std::int64_t>(step_ms * 1e6);
  timeline.names = {"", "aten::convolution", "nccl::all_reduce"};
  timeline.host_threads = {"main"};
  return timeline;
}

// Parameters out, forward, outputs in, backward, gradients in, optimizer on GPU 0 alone.
profiling::TracedStep data_parallel_step() {
  Timeline timeline = empty_step(1, 82);
  for (std::int32_t device = 0; device < 4; ++device) {
    add(timeline, device, 1, IntervalKind::collective, Phase::broadcast, 2, 13);
    for (int layer = 0; layer < 10; ++layer) {
      add(timeline, device, 0, IntervalKind::compute, Phase::forward, 13 + 1.6 * layer,
          14.5 + 1.6 * layer);
      add(timeline, device, 0, IntervalKind::compute, Phase::backward, 31 + 3.2 * layer,
          34 + 3.2 * layer);
    }
    if (device > 0) add(timeline, device, 1, IntervalKind::copy, Phase::gather, 29, 30);
    add(timeline, device, 1, IntervalKind::collective, Phase::reduce, 63, 75);
  }
  add(timeline, 0, 0, IntervalKind::compute, Phase::loss, 30, 31);
  add(timeline, 0, 0, IntervalKind::compute, Phase::optimizer, 75, 81);
  add(timeline, -1, 0, IntervalKind::host, Phase::forward, 0, 60);
  timeline.memory = {{0, 0, mib(300)}, {0, 30'000'000, mib(8000)}, {0, 80'000'000, mib(300)}};
  timeline.phases = {{0, Phase::forward, 0, 30'000'000},
                     {0, Phase::backward, 30'000'000, 60'000'000}};
  return {"resnet50, DP, 4 GPUs, batch 256", timeline};
}

// Buckets are reduced while backward goes on; every rank runs its own optimizer.
profiling::TracedStep distributed_step() {
  Timeline timeline = empty_step(4, 52);
  for (std::int32_t device = 0; device < 4; ++device) {
    for (int layer = 0; layer < 10; ++layer) {
      add(timeline, device, 0, IntervalKind::compute, Phase::forward, 0.5 + 1.6 * layer,
          2 + 1.6 * layer);
      add(timeline, device, 0, IntervalKind::compute, Phase::backward, 17 + 3.1 * layer,
          20 + 3.1 * layer);
    }
    for (int bucket = 0; bucket < 5; ++bucket) {
      add(timeline, device, 1, IntervalKind::collective, Phase::reduce, 24 + 5.2 * bucket,
          28.8 + 5.2 * bucket);
    }
    add(timeline, device, 0, IntervalKind::compute, Phase::optimizer, 50, 51.5);
  }
  return {"resnet50, DDP, 4 GPUs, batch 256", timeline};
}

RunContext toy_context() {
  RunContext context;
  context.scenario = "dp_vs_ddp";
  context.title = "the same training on one GPU, under DataParallel and under DDP";
  context.machine = "4xv100-sxm2";
  context.machine_note = "4 x V100 SXM2 16 GB, NVLink mesh; constants from specifications";
  context.device = "vgpu";
  context.execute = "shape";
  context.host_profile = "python";
  context.simulated = true;
  context.gpus = {0, 1, 2, 3};
  context.date = "2026-01-02T03:04:05Z";
  context.command = "bench --scenario dp_vs_ddp --gpus 0,1,2,3";
  context.fingerprint = "0123456789abcdef";
  context.versions = {{"bench", "0.1.0"}, {"torch", "2.11.0"}};
  context.notes = {"verified on a reduced twin of each model"};
  return context;
}

}  // namespace

ReportModel sample_report() {
  RunResult run;
  run.context = toy_context();
  for (const ToyModel& model : kModels) {
    for (const std::int64_t batch : {64, 128, 256}) {
      run.cases.push_back(toy_result(model, Strategy::single, 1, batch));
      for (const int gpus : {2, 4}) {
        run.cases.push_back(toy_result(model, Strategy::data_parallel, gpus, batch));
        run.cases.push_back(toy_result(model, Strategy::distributed, gpus, batch));
      }
    }
  }
  run.cases.push_back(toy_result(kModels[1], Strategy::data_parallel, 4, 640));
  run.cases.push_back(toy_result(kModels[1], Strategy::distributed, 4, 640));
  run.cases.push_back(troubled(CaseStatus::skipped, "batch 2 leaves ranks 2 and 3 without samples",
                               Strategy::distributed, 2));
  run.cases.push_back(troubled(CaseStatus::wrong,
                               "losses differ from single's by 3.1e-02 at step 2 (allowed 1.0e-05)",
                               Strategy::libtorch_data_parallel, 64));
  run.cases.push_back(troubled(CaseStatus::failed,
                               "rank 2 was killed by signal 9 in backward: <log> & \"more\"",
                               Strategy::distributed, 32));
  add_relative_metrics(run.cases);
  ReportModel model;
  model.runs.push_back(std::move(run));
  model.timelines = {data_parallel_step(), distributed_step()};
  model.directory = "results/runs/sample";
  model.files = {"results.json", "samples.jsonl", "timeline.json.gz", "report.html"};
  return model;
}

ReportModel sample_sweep() {
  RunResult run;
  run.context = toy_context();
  run.context.scenario = "bucket_size";
  run.context.title = "DDP's bucket cap";
  run.context.simulated = false;
  run.context.machine = "4 x NVIDIA <A100> & co";
  run.context.machine_note.clear();
  int slower = 5;
  for (const char* cap : {"1", "5", "25", "100"}) {
    CaseResult result = toy_result(kModels[1], Strategy::distributed, 4, 256);
    result.work.scenario = "bucket_size";
    result.work.tags = {{"bucket_mb", cap}};
    result.simulated = false;
    result.error_band = 0;
    result.facts.clear();
    result.metrics["step_ms_p50"] += slower;
    result.metrics["items_per_second"] = 256 / result.metrics["step_ms_p50"] * 1000;
    result.breakdown.clear();
    slower -= 2;
    run.cases.push_back(std::move(result));
  }
  ReportModel model;
  model.runs.push_back(std::move(run));
  return model;
}

ReportModel sample_failure() {
  RunResult run;
  run.context = toy_context();
  run.cases.push_back(
      troubled(CaseStatus::skipped, "needs 4 GPUs, found 1", Strategy::distributed, 64));
  run.cases.push_back(
      troubled(CaseStatus::skipped, "needs 4 GPUs, found 1", Strategy::data_parallel, 64));
  ReportModel model;
  model.runs.push_back(std::move(run));
  return model;
}

}  // namespace bench::report
