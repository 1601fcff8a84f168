// Where batches come from. Every process of a case asks for the same sequence of global
// micro-batches and gets its rank's slice, so that all strategies see the same samples and their
// results compare.
#pragma once

#include "bench/core/case.hpp"

#include "training/models/model.hpp"

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench::training {

struct Batch {
  torch::Tensor input;
  torch::Tensor target;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // This rank's part of the next micro-batch, on the device where it is needed.
  virtual Batch next() = 0;
};

// Which samples of a batch belong to a rank: contiguous, sizes differing by at most one, the larger
// slices first (as torch.tensor_split cuts).
struct Slice {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};
Slice rank_slice(std::int64_t batch, int rank, int world_size);

// Sizes of the micro-batches of one optimizer step; they differ by at most one.
std::vector<std::int64_t> micro_batches(const Case& work);

// Stands for `rank` where one process needs the slices of all ranks, one after the other: the
// single-device reference of a distributed run.
inline constexpr int kAllRanks = -1;

struct BatchOptions {
  DataKind data = DataKind::synthetic;
  std::vector<std::int64_t> micro_batches;  // global sizes, repeated every optimizer step
  int rank = 0;
  int world_size = 1;
  std::uint64_t seed = 1;
  // Without values (shape execution) the tensors are zeros that take no memory.
  bool values = true;
  // Synthetic: draw anew for every step instead of repeating one step's batches, which stay on the
  // device and so cost nothing in a timed step.
  bool fresh = false;
  int workers = 2;      // real data: loader threads; 0 loads in next()
  bool pinned = false;  // real data: page-locked host tensors, for asynchronous copies to CUDA
  std::string directory = "/usr/share/datasets/fashion-mnist";
  // Moves a host tensor to the device of this rank. Runs on the thread that calls next().
  std::function<torch::Tensor(const torch::Tensor&)> place;
};

// Options of a case on one rank, without `place`.
BatchOptions batch_options(const Case& work, int rank, int world_size);

// Throws UsageError when the data does not fit the model, MachineError when it is not installed.
std::unique_ptr<BatchSource> make_batch_source(const Model& model, BatchOptions options);

}  // namespace bench::training
