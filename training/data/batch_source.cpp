#include "training/data/batch_source.hpp"

#include "training/data/fashion_source.hpp"
#include "training/data/synthetic.hpp"

#include <algorithm>

namespace bench::training {

Slice rank_slice(std::int64_t batch, int rank, int world_size) {
  if (rank == kAllRanks) return {0, batch};
  const std::int64_t whole = batch / world_size;
  const std::int64_t larger = batch % world_size;  // ranks below this one have a sample more
  return {rank * whole + std::min<std::int64_t>(rank, larger), whole + (rank < larger ? 1 : 0)};
}

std::vector<std::int64_t> micro_batches(const Case& work) {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < work.accumulation; ++i) {
    sizes.push_back(rank_slice(work.batch, i, work.accumulation).count);
  }
  return sizes;
}

BatchOptions batch_options(const Case& work, int rank, int world_size) {
  BatchOptions options;
  options.data = work.data;
  options.micro_batches = micro_batches(work);
  options.rank = rank;
  options.world_size = world_size;
  options.seed = work.seed;
  options.workers = work.data_workers;
  return options;
}

std::unique_ptr<BatchSource> make_batch_source(const Model& model, BatchOptions options) {
  if (!options.place) options.place = [](const torch::Tensor& tensor) { return tensor; };
  const BatchShape shape(model);
  if (options.data == DataKind::fashion_mnist) {
    return make_fashion_source(shape, std::move(options));
  }
  return make_synthetic_source(shape, std::move(options));
}

}  // namespace bench::training
