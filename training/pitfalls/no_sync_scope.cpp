// no_sync around only one of forward and backward, or around the pass before the optimizer step.
// The wrapper looks at the flag in the forward pass.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

struct MicroBatch {
  bool forward_inside;   // no_sync
  bool backward_inside;  // no_sync
};

std::vector<MicroBatch> micro_batches(const Lab& lab) {
  const std::vector<MicroBatch> right{{true, true}, {false, false}};
  if (lab.cured()) return right;
  if (lab.form() == "forward-outside") return {{false, true}, {false, false}};
  if (lab.form() == "backward-outside") return {{true, true}, {true, false}};
  return {{true, true}, {true, true}};  // step-inside
}

}  // namespace

void no_sync_scope(Lab& lab) {
  const auto model = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  const auto ddp = lab.wrap(*model);
  const at::Tensor input = rank_input(lab);
  const int before = all_reduces(lab);
  Json& evidence = lab.evidence();
  for (const MicroBatch& micro : micro_batches(lab)) {
    evidence["forward_in_no_sync"].push_back(micro.forward_inside);
    evidence["backward_in_no_sync"].push_back(micro.backward_inside);
    run_backward(call(*ddp, input, !micro.forward_inside).sum() / 2);
  }
  evidence["step_gradient_sum"] = gradient_sum(*model);
  evidence["reductions"] = all_reduces(lab) - before;
  descend(*model, 0.01);
  evidence["weights_after"] = weight_sum(*model);
}

}  // namespace bench::training
