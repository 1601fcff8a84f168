// torch::nn::parallel::data_parallel, LibTorch's own DataParallel. It differs from Python's: every
// device, the primary too, gets a clone that is re-initialised and then copied tensor by tensor,
// and every parameter has a reduction of its own, which can overlap with the rest of backward.
//
// On CUDA a zoo model runs through LibTorch's function. It accepts neither virtual GPUs nor
// TorchScript modules, so these take the same steps in our own code.
#pragma once

#include "training/strategies/parallelism.hpp"
#include "training/strategies/replica_threads.hpp"
#include "training/strategies/replicas.hpp"

#include <memory>

namespace bench::training {

class LibtorchDataParallel final : public Parallelism {
 public:
  LibtorchDataParallel(Model& model, const std::vector<at::Device>& devices);

  torch::Tensor forward(const torch::Tensor& input, bool synchronise, PhaseSink& phases) override;
  std::map<std::string, double> counters() const override;

 private:
  void replicate(std::size_t count);
  void clone_to(std::size_t device, Replicas::Copies& copies);

  Model& model_;
  std::vector<at::Device> devices_;
  std::shared_ptr<Network> network_;    // set where LibTorch's own function runs
  std::unique_ptr<Replicas> replicas_;  // set elsewhere
  ReplicaThreads threads_;
  double bytes_communicated_ = 0;
};

}  // namespace bench::training
