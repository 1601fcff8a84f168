#include "bench/predict/prediction.hpp"

#include "bench/core/case_json.hpp"
#include "bench/core/strategy.hpp"
#include "bench/predict/recorded_step.hpp"
#include "simulator/rank_jitter.hpp"

#include "profiling/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace bench {
namespace {

constexpr double kNsPerMs = 1e6;
constexpr std::size_t kMostMemorySamples = 240;
// Beyond this a batch per GPU is not a question about memory any more.
constexpr std::int64_t kLargestBatchPerGpu = 1 << 20;

double mean_ms(const profiling::StepMetrics& step,
               std::int64_t (*part)(const profiling::DeviceMetrics&)) {
  double sum = 0;
  for (const auto& device : step.devices) sum += static_cast<double>(part(device));
  return sum / kNsPerMs / static_cast<double>(std::max<std::size_t>(step.devices.size(), 1));
}

void add_parts(Prediction& prediction, const profiling::StepMetrics& step) {
  using Device = profiling::DeviceMetrics;
  prediction.compute_ms = mean_ms(step, [](const Device& d) { return d.compute_ns; });
  prediction.exposed_communication_ms =
      mean_ms(step, [](const Device& d) { return d.exposed_communication_ns; });
  prediction.exposed_copy_ms = mean_ms(step, [](const Device& d) { return d.exposed_copy_ns; });
  prediction.host_ms = mean_ms(step, [](const Device& d) { return d.idle_host_ns; });
  prediction.idle_ms = mean_ms(step, [](const Device& d) { return d.idle_ns - d.idle_host_ns; });
  prediction.comm_overlap = step.comm_overlap;
}

// Names the single-device step of a question, whatever the strategy and the number of GPUs.
std::string single_key(const Question& question) {
  return std::to_string(question.machine) + " " + case_to_json(question.single());
}

// A process with several devices stays on nodes of the first kind.
std::vector<simulator::JobPart> parts_of(const simulator::Machine& machine, const Case& work) {
  const bool job = work.strategy == Strategy::distributed;
  std::vector<int> gpus(static_cast<std::size_t>(work.world_size()));
  std::iota(gpus.begin(), gpus.end(), 0);
  return job_parts(job || machine.groups.empty() ? machine : machine.groups.front(), gpus);
}

std::string input_line(const char* what, const simulator::Quantity& quantity, const char* unit) {
  return fmt::format("{}: {:g} {} ({})", what, quantity.value, unit,
                     simulator::provenance_name(quantity.provenance));
}

void add_inputs(const simulator::Machine& machine, bool networked, const std::string& heading,
                std::vector<std::string>& lines) {
  auto add = [&](const std::string& line) { lines.push_back(heading + line); };
  const simulator::GpuSpec& gpu = machine.gpu;
  add(input_line("fp32 rate", gpu.fp32_tflops, "TFLOPS"));
  if (gpu.fp16_tflops > 0) add(input_line("fp16 rate", gpu.fp16_tflops, "TFLOPS"));
  add(input_line("memory bandwidth", gpu.memory_bandwidth, "GB/s"));
  add(input_line("kernel launch", gpu.launch_ns, "ns"));
  add(input_line("PCIe", gpu.pcie_bandwidth, "GB/s per direction"));
  if (machine.node.nvlink != simulator::NvlinkKind::none) {
    add(fmt::format("NVLink: {} links of {:g} GB/s ({})", gpu.nvlink_links,
                    gpu.nvlink_bandwidth.value, provenance_name(gpu.nvlink_bandwidth.provenance)));
  }
  if (networked) {
    add(fmt::format("network: {} adapters of {:g} GB/s a node ({})", machine.node.nics,
                    machine.node.nic_bandwidth.value,
                    provenance_name(machine.node.nic_bandwidth.provenance)));
  }
  for (const auto& curve : machine.collectives) {
    add(fmt::format("all-reduce on {} ranks of {}: {}", curve.ranks, curve.name,
                    provenance_name(curve.provenance)));
  }
}

}  // namespace

bool Prediction::fits() const {
  return std::all_of(memory.begin(), memory.end(), [](const MemoryFit& m) { return m.fits; });
}

std::vector<std::string> inputs_of(const simulator::Machine& machine, bool anchored) {
  std::vector<std::string> lines;
  if (anchored) lines.emplace_back("single-device step: measured (--measured-single)");
  if (machine.groups.empty()) add_inputs(machine, machine.node_count > 1, "", lines);
  for (const simulator::Machine& group : machine.groups) {
    add_inputs(group, true, group.node.title + ": ", lines);
  }
  return lines;
}

Predictor::Predictor(const PredictRequest& request, const std::vector<simulator::Machine>& machines,
                     RecordingStore& store)
    : request_(request), machines_(machines), store_(store) {}

std::vector<Prediction> Predictor::answer(const std::vector<Question>& all) {
  std::vector<Case> needed;
  for (const Question& question : all) {
    if (question.cannot) continue;
    needed.push_back(recorded_for(question.work));
    needed.push_back(recorded_for(question.single()));
  }
  store_.prepare(needed);
  std::vector<Prediction> predictions;
  for (const Question& question : all) predictions.push_back(predict(question));
  return predictions;
}

simulator::OperationGraph Predictor::edited(const Question& question, const Case& work) {
  return with_bucket_hook(with_precision(recorded(work), question.precision), question.hook);
}

Case Predictor::recorded_for(const Case& work) const {
  return request_.exact_recordings ? work : standard_case(work);
}

// An edited recording of the standard case; a recording of its own where that one does not show
// how.
simulator::OperationGraph Predictor::recorded(const Case& work) {
  const Case standard = recorded_for(work);
  if (case_to_json(standard) == case_to_json(work)) return *store_.graph(work);
  auto edited = edited_step(*store_.graph(standard), work);
  if (edited) return std::move(*edited);
  store_.prepare({work});
  return *store_.graph(work);
}

// The measurement is of the single-device step at this batch per GPU in the first precision asked.
simulator::SimulationOptions Predictor::options_for(const Question& question) {
  simulator::SimulationOptions options;
  options.host = question.work.host;
  options.seed = question.work.seed;
  options.straggler = request_.straggler;
  options.rank_speeds = request_.rank_speeds;
  options.rank_jitter = request_.jitter;
  options.draw_jitter = request_.draw_jitter;
  if (!request_.measured_single_ms) return options;
  const simulator::Anchor& anchor = anchor_of(question, options);
  options.kernel_scale = anchor.kernel_scale;
  options.host_scale = anchor.host_scale;
  return options;
}

const simulator::Anchor& Predictor::anchor_of(const Question& question,
                                              const simulator::SimulationOptions& options) {
  const std::string key = single_key(question);
  const auto found = anchors_.find(key);
  if (found != anchors_.end()) return found->second;
  const auto single = with_precision(recorded(question.single()), request_.precisions.front());
  const auto anchor = simulator::anchor_to_single(single, machines_[question.machine], options,
                                                  *request_.measured_single_ms * kNsPerMs);
  return anchors_.emplace(key, anchor).first->second;
}

double Predictor::single_ms(const Question& question, const simulator::SimulationOptions& options) {
  const std::string key = single_key(question) + precision_name(question.precision);
  const auto found = singles_.find(key);
  if (found != singles_.end()) return found->second;
  simulator::SimulationOptions one = options;
  one.keep_intervals = false;
  const auto simulated =
      simulate(edited(question, question.single()), machines_[question.machine], one);
  const double ms = static_cast<double>(simulated.timeline.step_ns) / kNsPerMs;
  return singles_.emplace(key, ms).first->second;
}

Prediction Predictor::predict(const Question& question) {
  Prediction prediction;
  prediction.question = question;
  if (question.cannot) return prediction;
  add_step(prediction, options_for(question));
  return prediction;
}

void Predictor::add_step(Prediction& prediction, const simulator::SimulationOptions& options) {
  const Case& work = prediction.work();
  const simulator::Machine& machine = machines_[prediction.question.machine];
  const auto graph = edited(prediction.question, work);
  simulator::SimulationOptions all = options;
  if (work.strategy == Strategy::distributed) all.world_size = work.world_size();
  const auto groups = simulate_groups(graph, machine, all);
  const auto& simulated = groups[simulator::slowest_group(groups)].result;
  add_parts(prediction, profiling::analyze(simulated.timeline));
  prediction.step_ms = static_cast<double>(simulated.timeline.step_ns) / kNsPerMs;
  prediction.bytes_communicated = simulated.bytes_communicated;
  prediction.error = simulated.error;
  prediction.samples_per_second = static_cast<double>(work.batch) * 1e3 / prediction.step_ms;
  add_memory(prediction, graph);
  prediction.memory_over_time = memory_over_time(simulated.timeline, 0, kMostMemorySamples);
  add_speed_classes(prediction);
  add_node_classes(prediction, groups);
  const bool alone = work.strategy == Strategy::single;
  prediction.single_ms = alone ? prediction.step_ms : single_ms(prediction.question, options);
  prediction.scaling_efficiency = prediction.single_ms / prediction.step_ms;
}

// Kernels of a faster rank take less of the same work; its collectives start when the slowest has
// come, so that the difference is waiting.
void Predictor::add_speed_classes(Prediction& prediction) const {
  const Case& work = prediction.work();
  if (request_.rank_speeds.empty() || work.strategy != Strategy::distributed) return;
  const auto classes = simulator::ranks_by_speed(work.world_size(), request_.rank_speeds);
  const double slowest = classes.begin()->first;
  for (const auto& [speed, ranks] : classes) {
    prediction.speed_classes.push_back(
        {"", speed, ranks, prediction.compute_ms * (1 - slowest / speed)});
  }
}

// Everybody is there when a collective begins: a GPU that computes less waits for the difference.
void Predictor::add_node_classes(Prediction& prediction,
                                 const std::vector<simulator::GroupSimulation>& groups) {
  if (groups.size() < 2) return;
  for (const simulator::GroupSimulation& group : groups) {
    Prediction own;
    add_parts(own, profiling::analyze(group.result.timeline));
    prediction.speed_classes.push_back({group.node, prediction.compute_ms / own.compute_ms,
                                        group.ranks, prediction.compute_ms - own.compute_ms});
  }
}

void Predictor::add_memory(Prediction& prediction, const simulator::OperationGraph& graph) const {
  const auto parts = parts_of(machines_[prediction.question.machine], prediction.work());
  for (const simulator::JobPart& part : parts) {
    prediction.memory.push_back(memory_fit(graph, 0, part));
    if (parts.size() > 1) prediction.memory.back().node = part.machine->node.title;
  }
  MemoryFit fullest;
  for (int device = 1; device < graph.devices; ++device) {
    MemoryFit other = memory_fit(graph, device, parts.front());
    if (other.total_bytes() > fullest.total_bytes()) fullest = std::move(other);
  }
  if (fullest.peak_bytes > 0) prediction.memory.push_back(std::move(fullest));
}

bool Predictor::fits_at(const Question& question, std::int64_t per_gpu) {
  Question at = question;
  at.work.batch = per_gpu * question.work.world_size() * question.work.accumulation;
  store_.prepare({recorded_for(at.work)});
  Prediction prediction;
  prediction.question = at;
  add_memory(prediction, edited(at, at.work));
  return prediction.fits();
}

std::int64_t Predictor::max_batch_per_gpu(const Question& question) {
  store_.prepare_series(recorded_for(question.work));
  std::int64_t fits = 0;
  std::int64_t too_large = 1;
  while (too_large <= kLargestBatchPerGpu && fits_at(question, too_large)) {
    fits = too_large;
    too_large *= 2;
  }
  while (too_large - fits > 1) {
    const std::int64_t middle = fits + (too_large - fits) / 2;
    (fits_at(question, middle) ? fits : too_large) = middle;
  }
  return fits * question.work.accumulation;
}

}  // namespace bench
