// Python's torch.nn.DataParallel: scatter by chunk, one coalesced broadcast of all parameters, a
// replica per device on a host thread of its own, gather on the primary device; in backward one
// coalesced reduction, which cannot start before the last gradient of the last replica exists,
// because all parameters hang on a single Broadcast node.
#pragma once

#include "training/strategies/arguments.hpp"
#include "training/strategies/parallelism.hpp"
#include "training/strategies/replica_threads.hpp"
#include "training/strategies/replicas.hpp"

#include <functional>
#include <memory>

namespace bench::training {

class DataParallel final : public Parallelism {
 public:
  // `model` is on devices[0], the primary and output device.
  DataParallel(Model& model, const std::vector<at::Device>& devices);

  torch::Tensor forward(const torch::Tensor& input, bool synchronise, PhaseSink& phases) override;
  // Python's model(*args, **kwargs) for a module of several arguments or outputs, whose forward is
  // this function of a replica's networks and its share of the arguments.
  using ReplicaForward = std::function<at::IValue(Model& replica, const Arguments& share)>;
  at::IValue call(const Arguments& arguments, const ReplicaForward& forward, PhaseSink& phases);
  std::map<std::string, double> counters() const override;

 private:
  void replicate(std::size_t count, PhaseSink& phases);

  Model& model_;
  Replicas replicas_;
  ReplicaThreads threads_;
  double bytes_communicated_ = 0;
};

}  // namespace bench::training
