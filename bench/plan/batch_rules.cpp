#include "bench/plan/batch_rules.hpp"

#include "bench/core/strategy.hpp"

namespace bench {
namespace {

std::string batch_on_gpus(const Case& work) {
  return "batch " + std::to_string(work.batch) + " on " + std::to_string(work.world_size()) +
         (work.world_size() == 1 ? " GPU" : " GPUs");
}

std::optional<std::string> distributed_problem(const Case& work, std::int64_t micro_batch) {
  const std::int64_t ranks = work.world_size();
  if (micro_batch < ranks) {
    return batch_on_gpus(work) + " leaves rank " + std::to_string(micro_batch) + " without samples";
  }
  if (micro_batch % ranks == 0) return std::nullopt;
  const std::int64_t per_rank = work.batch / (ranks * work.accumulation);
  return batch_on_gpus(work) + " does not divide evenly; the next ones that do are " +
         std::to_string(per_rank * ranks * work.accumulation) + " and " +
         std::to_string((per_rank + 1) * ranks * work.accumulation);
}

// torch.chunk: pieces of ceil(n / devices), so 5 samples on 4 devices are 2 + 2 + 1 + nothing.
std::optional<std::string> scatter_problem(const Case& work, std::int64_t micro_batch) {
  const std::int64_t devices = work.world_size();
  const std::int64_t chunk = (micro_batch + devices - 1) / devices;
  const std::int64_t chunks = (micro_batch + chunk - 1) / chunk;
  if (chunks == devices) return std::nullopt;
  return batch_on_gpus(work) + " is cut into chunks of " + std::to_string(chunk) +
         " and leaves GPU " + std::to_string(work.gpus[static_cast<std::size_t>(chunks)]) +
         " without samples";
}

}  // namespace

std::optional<std::string> batch_problem(const Case& work) {
  if (work.batch % work.accumulation != 0) {
    return "batch " + std::to_string(work.batch) + " does not divide into " +
           std::to_string(work.accumulation) + " equal micro-batches";
  }
  const std::int64_t micro_batch = work.batch / work.accumulation;
  switch (work.strategy) {
    case Strategy::single:
      return std::nullopt;
    case Strategy::data_parallel:
    case Strategy::libtorch_data_parallel:
      return scatter_problem(work, micro_batch);
    case Strategy::distributed:
      return distributed_problem(work, micro_batch);
  }
  return std::nullopt;
}

std::optional<std::int64_t> batch_per_gpu(const Case& work) {
  if (work.batch % work.world_size() != 0) return std::nullopt;
  return work.batch / work.world_size();
}

}  // namespace bench
