// Orders in which samples are visited, index by index those of PyTorch's samplers in Python.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <vector>

namespace bench::training {

struct DistributedSamplerOptions {
  std::int64_t length = 0;  // of the data set
  int world_size = 1;       // num_replicas in Python
  int rank = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;
  bool drop_last = false;
};

// torch.utils.data.DistributedSampler: every rank gets the same number of samples, by repeating
// samples from the start of the order or, with drop_last, by leaving out its tail.
class DistributedSampler {
 public:
  // Throws UsageError for a rank outside the world or a negative length.
  explicit DistributedSampler(const DistributedSamplerOptions& options);

  // Without it every epoch has the order of the first.
  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }
  // Samples of this rank in one epoch; what len() gives in Python.
  std::int64_t size() const { return samples_; }
  // The indices of this epoch. Throws UsageError when seed + epoch exceeds 64 bits, as Python does.
  std::vector<std::int64_t> indices() const;

 private:
  DistributedSamplerOptions options_;
  std::int64_t samples_ = 0;
  std::uint64_t epoch_ = 0;
};

// torch.utils.data.RandomSampler without replacement, given a generator seeded with `seed`: one
// permutation for each pass, drawn from one generator.
class RandomSampler {
 public:
  // Throws UsageError for an empty data set, as Python does.
  RandomSampler(std::int64_t length, std::uint64_t seed);

  std::vector<std::int64_t> next_pass();

 private:
  std::int64_t length_;
  at::Generator generator_;
};

// torch.utils.data.SequentialSampler.
std::vector<std::int64_t> sequential_indices(std::int64_t length);

}  // namespace bench::training
