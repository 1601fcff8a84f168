// What a strategy adds to plain training: how a batch on the primary device becomes an output on
// the primary device, and what happens to the gradients while the backward pass runs. Everything
// else (loss, backward, optimizer, data) is the same for all of them and lives in Trainer.
#pragma once

#include "training/strategies/phase_sink.hpp"

#include <torch/torch.h>

#include <map>
#include <string>

namespace bench::training {

class Parallelism {
 public:
  virtual ~Parallelism() = default;

  // The output for `input`, differentiable back to the model's parameters. `synchronise` is false
  // for the micro-batches whose gradients are only accumulated (no_sync).
  virtual torch::Tensor forward(const torch::Tensor& input, bool synchronise,
                                PhaseSink& phases) = 0;

  // Figures for the rank's report, e.g. "buckets", "bytes_communicated" of the last step.
  virtual std::map<std::string, double> counters() const { return {}; }
};

}  // namespace bench::training
