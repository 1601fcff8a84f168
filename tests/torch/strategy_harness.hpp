// Trains a case inside the test: every rank of a distributed case on a thread of its own, over Gloo
// and a store in memory, so that a test needs no processes and no ports.
#pragma once

#include "bench/core/job.hpp"

#include "training/strategies/trainer.hpp"

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bench::training {

inline constexpr int kSteps = 4;

// Single precision carries 6e-8 per operation. A linear layer stays near it; BatchNorm over a few
// samples amplifies rounding at every layer and step.
inline constexpr double kLinearTolerance = 1e-6;
inline constexpr double kBatchNormTolerance = 2e-4;

struct Trained {
  std::vector<double> losses;          // per step, mean over the global batch
  std::vector<at::Tensor> parameters;  // trainable, on the CPU
  std::vector<at::Tensor> buffers;     // of rank 0
};

// The largest difference of two runs, relative to the size of the loss or the norm of the
// parameter.
struct Difference {
  double loss = 0;
  double parameter = 0;
};

// A case on the reduced twin of `model`, on virtual GPUs computing values, or on the CPU.
Case twin_case(const std::string& model, Strategy strategy, int gpus, std::int64_t batch,
               DeviceKind device = DeviceKind::vgpu);

Trained train(const Case& work, int steps);
// The single-device run of `work` in chunks of these sizes (empty: no chunks).
Trained train_reference(const Case& work, int steps, const std::vector<std::int64_t>& chunks);
Difference difference(const Trained& run, const Trained& reference);

// Calls body(rank, placement) for every rank of `work`; exceptions of the lowest rank come out.
void on_every_rank(const Case& work, const std::function<void(int, Placement)>& body);

}  // namespace bench::training
