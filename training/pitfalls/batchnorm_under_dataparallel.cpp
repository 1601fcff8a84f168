// BatchNorm under DataParallel: each replica normalises with its own shard's statistics, and the
// running statistics keep what the first GPU saw.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/batch_norm_probe.hpp"
#include "training/pitfalls/state_experiments.hpp"
#include "training/strategies/data_parallel.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kShardRows = 4;

}  // namespace

void batchnorm_under_dataparallel(Lab& lab) {
  const auto gpus = static_cast<int>(lab.devices().size());
  std::vector<at::Tensor> shards;
  for (int gpu = 0; gpu < gpus; ++gpu) shards.push_back(probe_batch(kShardRows, gpu));
  const at::Tensor batch = torch::cat(shards);
  const auto model = lab.model(lab.cured() ? sample_norm() : batch_norm2d(4), lab.seed());
  DataParallel parallel(*model, lab.devices());
  IgnorePhases ignore;
  const at::Tensor gathered = parallel.forward(to_vgpu(batch, lab.device().index()), true, ignore);
  run_backward(gathered.sum());  // replicas give their memory back in backward
  const at::Tensor output = gathered.detach().cpu();
  Json& evidence = lab.evidence();
  for (int gpu = 0; gpu < gpus; ++gpu)
    evidence["replica_probe_outputs"].push_back(
        output[gpu * kShardRows].square().mean().item<double>());
  evidence["shard_rows"] = kShardRows;
  const auto buffers = model->buffers();
  evidence["running_mean"] =
      buffers.empty() ? 0.0 : buffers.at(0).tensor.cpu().sum().item<double>();
  // What one GPU with the whole batch would keep: momentum 0.1.
  evidence["running_mean_of_batch"] =
      buffers.empty() ? 0.0 : 0.1 * batch.mean(0).sum().item<double>();
}

}  // namespace bench::training
