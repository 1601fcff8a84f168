#include "training/data/distributed_sampler.hpp"

#include "bench/core/error.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <limits>
#include <numeric>
#include <string>

namespace bench::training {
namespace {

std::int64_t ceiling_division(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::vector<std::int64_t> permutation(std::int64_t length, at::Generator generator) {
  const torch::Tensor order = torch::randperm(length, generator, torch::kInt64);
  const std::int64_t* first = order.const_data_ptr<std::int64_t>();
  return {first, first + length};
}

}  // namespace

DistributedSampler::DistributedSampler(const DistributedSamplerOptions& options)
    : options_(options) {
  const std::int64_t ranks = options.world_size;
  if (ranks < 1 || options.rank < 0 || options.rank >= ranks) {
    throw UsageError("Invalid rank " + std::to_string(options.rank) +
                     ", rank should be in the interval [0, " + std::to_string(ranks - 1) + "]");
  }
  if (options.length < 0) throw UsageError("a data set cannot have a negative length");
  samples_ = options.drop_last ? options.length / ranks : ceiling_division(options.length, ranks);
}

std::vector<std::int64_t> DistributedSampler::indices() const {
  std::vector<std::int64_t> order;
  if (options_.shuffle) {
    if (epoch_ > std::numeric_limits<std::uint64_t>::max() - options_.seed) {
      throw UsageError("sampler: seed + epoch exceeds 64 bits");
    }
    order = permutation(options_.length,
                        at::make_generator<at::CPUGeneratorImpl>(options_.seed + epoch_));
  } else {
    order = sequential_indices(options_.length);
  }
  // The padded order is the order repeated; with drop_last no position reaches its end.
  std::vector<std::int64_t> mine;
  mine.reserve(static_cast<std::size_t>(samples_));
  for (std::int64_t i = 0; i < samples_; ++i) {
    const std::int64_t position = options_.rank + i * options_.world_size;
    mine.push_back(order[static_cast<std::size_t>(position % options_.length)]);
  }
  return mine;
}

RandomSampler::RandomSampler(std::int64_t length, std::uint64_t seed)
    : length_(length), generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {
  if (length <= 0) {
    throw UsageError("num_samples should be a positive integer value, but got num_samples=" +
                     std::to_string(length));
  }
}

std::vector<std::int64_t> RandomSampler::next_pass() {
  std::vector<std::int64_t> order = permutation(length_, generator_);
  // Python draws a further permutation at the end of a pass and takes none of it.
  torch::randperm(length_, generator_, torch::kInt64);
  return order;
}

std::vector<std::int64_t> sequential_indices(std::int64_t length) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(length));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace bench::training
