// The loss is computed inside a DataParallel model: each replica returns a scalar, and gathering
// makes a vector of them.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"
#include "training/strategies/data_parallel.hpp"

namespace bench::training {
namespace {

// The mean over the replica's own samples, as the one-element vector that Gather makes of a scalar.
Network::Build returning_its_loss() {
  return [](Network& self) -> Network::Forward {
    const Part part = self.add("part", linear({.in = 4, .out = 4}));
    return [=](const Network&, const at::Tensor& input) {
      return part->forward(input).mean().unsqueeze(0);
    };
  };
}

}  // namespace

void loss_inside_dp_forward(Lab& lab) {
  const auto model = lab.model(returning_its_loss(), lab.seed());
  DataParallel parallel(*model, lab.devices());
  IgnorePhases ignore;
  const at::Tensor input = to_vgpu(torch::ones({8, 4}), lab.device().index());
  // What one GPU computes for the same batch.
  run_backward(model->forward(input).sum());
  lab.evidence()["reference_gradient_sum"] = gradient_sum(*model);
  clear_gradients(*model);
  const at::Tensor losses = parallel.forward(input, true, ignore);
  lab.evidence()["loss_elements"] = losses.numel();
  const bool passed = lab.attempt([&] {
    if (lab.cured()) return run_backward(losses.mean());
    run_backward(lab.form() == "summed" ? losses.sum() : losses);
  });
  lab.evidence()["gradient_sum"] = gradient_sum(*model);
  // Replicas give their memory back in a backward pass, which this run has not had.
  if (!passed) run_backward(losses.mean());
}

}  // namespace bench::training
