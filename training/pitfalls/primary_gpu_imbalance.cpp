// DataParallel gathers outputs on the primary GPU; with wide outputs and the loss outside the model
// they, the loss and its gradients fill that GPU while the others are half empty.
#include "simulator/operation_graph.hpp"

#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"
#include "training/strategies/data_parallel.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kFeatures = 32;
constexpr std::int64_t kTokens = 4096;  // a wide output, as a language model's
constexpr std::int64_t kReportedBatch =
    1024;  // outputs outweigh the weights, as they do in practice
constexpr std::int64_t kMemoryLimit = 64LL << 20;

at::Tensor mean_loss(const at::Tensor& output) {
  const at::Tensor target =
      to_vgpu(torch::zeros({output.size(0)}, torch::kInt64), output.device().index());
  return torch::cross_entropy_loss(output, target);
}

// The wide layer, with its loss inside where that is the cure.
Network::Build wide_layer(bool loss_inside) {
  return [=](Network& self) -> Network::Forward {
    const Part part = self.add("part", linear({.in = kFeatures, .out = kTokens}));
    return [=](const Network&, const at::Tensor& input) {
      const at::Tensor output = part->forward(input);
      return loss_inside ? mean_loss(output).unsqueeze(0) : output;
    };
  };
}

void train_step(Lab& lab, DataParallel& parallel, std::int64_t batch) {
  IgnorePhases ignore;
  const at::Tensor input = to_vgpu(torch::ones({batch, kFeatures}), lab.device().index());
  const at::Tensor output = parallel.forward(input, true, ignore);
  run_backward(lab.cured() ? output.mean() : mean_loss(output));
}

std::uint64_t largest_peak(Lab& lab, DataParallel& parallel, std::int64_t batch) {
  for (std::size_t i = 0; i < lab.devices().size(); ++i) reset_peak(static_cast<int>(i));
  train_step(lab, parallel, batch);
  std::uint64_t peak = 0;
  for (std::size_t i = 0; i < lab.devices().size(); ++i)
    peak = std::max(peak, peak_bytes(static_cast<int>(i)));
  return peak;
}

// The largest multiple of the GPU count whose step fits on every GPU.
std::int64_t largest_batch(Lab& lab, DataParallel& parallel) {
  const auto gpus = static_cast<std::int64_t>(lab.devices().size());
  std::int64_t fits = 0;
  std::int64_t fails = 8192 / gpus;
  while (fails - fits > 1) {
    const std::int64_t middle = (fits + fails) / 2;
    const auto peak = static_cast<std::int64_t>(largest_peak(lab, parallel, middle * gpus));
    (peak <= kMemoryLimit ? fits : fails) = middle;
    lab.heartbeat();
  }
  return fits * gpus;
}

}  // namespace

void primary_gpu_imbalance(Lab& lab) {
  const auto model = lab.model(wide_layer(lab.cured()), lab.seed());
  DataParallel parallel(*model, lab.devices());
  Json& evidence = lab.evidence();
  train_step(lab, parallel, kReportedBatch);
  start_recording();
  train_step(lab, parallel, kReportedBatch);
  simulator::OperationGraph graph = stop_recording();
  graph.devices = static_cast<std::int32_t>(lab.devices().size());
  for (std::int32_t gpu = 0; gpu < graph.devices; ++gpu) {
    const auto peak = graph.peak_memory(gpu);
    evidence["peak_bytes"].push_back(peak.bytes);
    Json categories = Json::object();
    for (int i = 0; i < simulator::kMemoryCategoryCount; ++i) {
      const auto category = static_cast<simulator::MemoryCategory>(i);
      if (peak.by_category[i] > 0) categories[memory_category_name(category)] = peak.by_category[i];
    }
    evidence["peak_categories"].push_back(std::move(categories));
  }
  evidence["batch"] = kReportedBatch;
  evidence["memory_limit_bytes"] = kMemoryLimit;
  evidence["largest_batch"] = largest_batch(lab, parallel);
}

}  // namespace bench::training
