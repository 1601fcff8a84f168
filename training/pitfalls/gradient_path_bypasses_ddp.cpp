// The training forward goes through the module inside the wrapper (`ddp.module(x)`): no gradient is
// reduced, and every rank trains a model of its own.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

constexpr int kDivergingSteps = 10;

}  // namespace

void gradient_path_bypasses_ddp(Lab& lab) {
  const auto model = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  const auto ddp = lab.wrap(*model);
  const at::Tensor input = rank_input(lab);
  Json& evidence = lab.evidence();
  const int before = all_reduces(lab);
  evidence["ddp_forwards"] = lab.cured() ? kDivergingSteps : 0;
  evidence["backwards"] = kDivergingSteps;
  for (int step = 0; step < kDivergingSteps; ++step) {
    clear_gradients(*model);
    run_backward((lab.cured() ? call(*ddp, input) : model->forward(input)).sum());
    if (step == 0) evidence["gradient_sum"] = gradient_sum(*model);
    descend(*model, 0.01);
    evidence["weight_sums"].push_back(weight_sum(*model));
  }
  evidence["gradient_all_reduces"] = all_reduces(lab) - before;
}

}  // namespace bench::training
