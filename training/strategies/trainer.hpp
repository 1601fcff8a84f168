// Trains one case in one process: model, data, strategy and optimizer put together. A step is the
// same for every strategy; what differs is behind Parallelism.
#pragma once

#include "bench/core/job.hpp"

#include "training/data/batch_source.hpp"
#include "training/models/model.hpp"
#include "training/strategies/parallelism.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/torch.h>

#include <memory>
#include <vector>

namespace bench::training {

// Where this process trains.
struct Placement {
  std::vector<at::Device> devices;  // devices[0] is the primary
  int rank = 0;                     // of world_size processes
  int world_size = 1;
  c10::intrusive_ptr<c10d::ProcessGroup> group;  // `distributed` only
};

struct TrainerOptions {
  Scale scale = Scale::full;
  Init init = Init::seeded;
  bool keep_start = false;     // keep the first values of the parameters, for fingerprint()
  bool fresh_batches = false;  // synthetic data: other samples in every step
  // Floating-point parameters, buffers and samples as float64: rounding then explains nothing that
  // a comparison could mistake for a fault.
  bool double_precision = false;
  // Trains the single-device reference in the chunks of this job.
  const Job* reference = nullptr;
};

class Trainer {
 public:
  Trainer(const Case& work, Placement placement, const TrainerOptions& options = {});

  // One optimizer step.
  void step(PhaseSink& phases);

  // Mean loss over this rank's samples in the last step. Waits for the device.
  double last_loss() const;

  // Losses of all steps so far and digests of the trainable parameters; needs keep_start.
  Fingerprint fingerprint() const;
  std::map<std::string, double> counters() const;

  const Model& model() const { return *model_; }
  Model& model() { return *model_; }
  Parallelism& parallelism() { return *parallelism_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  at::Device primary() const { return placement_.devices[0]; }

 private:
  // Loss of one micro-batch, left on the device, and how many samples it is the mean of.
  struct MicroLoss {
    at::Tensor loss;
    std::int64_t samples = 0;
  };
  using StepLoss = std::vector<MicroLoss>;
  static double mean(const StepLoss& losses);

  MicroLoss micro_step(std::size_t index, PhaseSink& phases);
  void watch_gradients();
  void label_memory();

  Case work_;
  Placement placement_;
  std::vector<std::int64_t> micro_batches_;
  std::unique_ptr<Model> model_;
  std::vector<at::Tensor> parameters_;  // trainable
  std::vector<at::Tensor> start_;       // their first values
  // Keeps the hooks of watch_gradients() alive: a parameter refers weakly to its accumulator.
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  std::unique_ptr<Parallelism> parallelism_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<BatchSource> batches_;
  StepLoss last_losses_;
  std::vector<StepLoss> losses_;  // of every step, with keep_start
};

}  // namespace bench::training
