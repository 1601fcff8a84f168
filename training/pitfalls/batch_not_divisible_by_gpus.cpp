// Batches that DataParallel cannot cut evenly: torch.chunk makes pieces of ceil(B/N), so that some
// GPUs get nothing.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"
#include "training/strategies/data_parallel.hpp"

#include <map>

namespace bench::training {
namespace {

// Samples that each replica was given, as the replicas themselves saw it.
class ShardLog {
 public:
  Network::Build watch(const Network::Build& inner) {
    return [this, inner](Network& self) -> Network::Forward {
      const Part part = self.add("part", inner);
      return [this, part](const Network&, const at::Tensor& input) {
        {
          const std::lock_guard lock(mutex_);
          shards_[input.device().index()] = input.size(0);
        }
        return part->forward(input);
      };
    };
  }

  Json shards() const {
    Json list = Json::array();
    for (const auto& [device, samples] : shards_) list.push_back(samples);
    return list;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::int64_t> shards_;
};

}  // namespace

void batch_not_divisible_by_gpus(Lab& lab) {
  const auto gpus = static_cast<std::int64_t>(lab.devices().size());
  // Of an epoch of 18 samples in batches of 8, the last.
  std::int64_t batch = 6;
  if (lab.form() == "nine-on-eight") batch = 9;
  if (lab.form() == "short-last-batch") batch = 18 % 8;
  if (lab.form() == "fewer-than-gpus") batch = 3;
  if (lab.cured()) batch = (batch + gpus - 1) / gpus * gpus;
  ShardLog log;
  const auto model = lab.model(log.watch(linear({.in = 4, .out = 4})), lab.seed());
  DataParallel parallel(*model, lab.devices());
  IgnorePhases ignore;
  const at::Tensor input = to_vgpu(torch::ones({batch, 4}), lab.device().index());
  const at::Tensor output = parallel.forward(input, true, ignore);
  run_backward(output.sum());
  lab.evidence()["batch"] = batch;
  lab.evidence()["shards"] = log.shards();
  lab.evidence()["output_rows"] = output.size(0);
}

}  // namespace bench::training
