// DistributedDataParallel from C++: one process per GPU around c10d::Reducer, in the order in which
// Python's torch.nn.parallel.DistributedDataParallel (2.11) calls it.
#pragma once

#include "training/models/model.hpp"
#include "training/strategies/parallelism.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <memory>
#include <vector>

namespace bench::training {

// Caps, in bytes, that the buckets of the first iteration are filled to. Without unused parameters
// to look for, PyTorch starts with a single bucket without a limit and learns the order from it.
std::vector<std::size_t> initial_bucket_limits(const DdpOptions& options);
// Cap of every bucket after the first, and of the first: 25 MiB and 1 MiB unless the user sets one.
std::int64_t bucket_cap_bytes(const DdpOptions& options);
std::int64_t first_bucket_cap_bytes(const DdpOptions& options);

class Distributed final : public Parallelism {
 public:
  // Checks that all ranks hold the same shapes, then gives them rank 0's values.
  Distributed(Model& model, c10::intrusive_ptr<c10d::ProcessGroup> group, DdpOptions options);

  torch::Tensor forward(const torch::Tensor& input, bool synchronise, PhaseSink& phases) override;
  std::map<std::string, double> counters() const override;

  // Bytes of the buckets in the order in which they are reduced.
  std::vector<std::int64_t> bucket_bytes() const;
  c10d::Reducer& reducer() { return *reducer_; }

 private:
  void broadcast_buffers();
  bool needs_sink() const;

  Model& model_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  const DdpOptions options_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  // The logger refers to the reducer and is destroyed first.
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
  // False until the end of the first step of a static graph, whose reduction is delayed to the end.
  bool static_graph_delayed_ = false;
  bool sync_buffers_ = true;  // buffers follow rank 0 except between accumulated micro-batches

  friend struct DistributedSink;
};

}  // namespace bench::training
