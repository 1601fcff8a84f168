// One rank changes its model alone: it skips an optimizer step because its own loss overflowed
// under the loss scale, or loads a checkpoint after wrapping. DDP reduces gradients, never weights.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr int kStateSteps = 5;
constexpr int kOverflowStep = 2;
constexpr double kHalfLargest = 65504;  // of float16
constexpr double kScale = 65536;

// The last rank's loss is 1 in one step: times the scale it does not fit float16.
bool overflows(const Lab& lab, int step) {
  const double loss = lab.rank() + 1 == lab.world_size() && step == kOverflowStep ? 1.0 : 0.1;
  return loss * kScale > kHalfLargest;
}

void train_on(Lab& lab, Model& model, Distributed& ddp, bool scaler) {
  Json& evidence = lab.evidence();
  int done = 0;
  for (int step = 0; step < kStateSteps; ++step) {
    clear_gradients(model);
    run_backward(call(ddp, rank_input(lab)).sum());
    bool skip = scaler && overflows(lab, step);
    if (scaler && lab.cured()) skip = lab.all_reduce_sum(skip ? 1 : 0) > 0;
    if (skip) continue;
    descend(model, 0.01);
    ++done;
  }
  evidence["optimizer_steps"] = done;
  evidence["weights_after"] = weight_sum(model);
}

void load_half_of(const Model& model) {
  const torch::NoGradGuard no_grad;
  for (const NamedTensor& parameter : model.parameters()) parameter.tensor.fill_(0.5);
}

}  // namespace

void one_rank_state_change(Lab& lab) {
  const auto model = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  const bool scaler = lab.form() == "scaler-skip";
  if (!scaler && lab.cured() && lab.rank() == 0) load_half_of(*model);
  const auto ddp = lab.wrap(*model);
  if (!scaler && !lab.cured() && lab.rank() == 0) load_half_of(*model);
  train_on(lab, *model, *ddp, scaler);
}

}  // namespace bench::training
