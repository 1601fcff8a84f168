// Two backward passes over one forward pass of the wrapper: the first is reduced, the second only
// adds this rank's own gradient.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {

void second_backward_unsynchronised(Lab& lab) {
  const auto model = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  const auto ddp = lab.wrap(*model);
  // Half a loss twice, or two whole losses.
  const double weight = lab.form() == "retain-graph" ? 0.5 : 1.0;
  const at::Tensor first = call(*ddp, rank_input(lab)).sum() * weight;
  const int before = all_reduces(lab);
  if (lab.cured()) {
    run_backward(first + first);
  } else {
    const BackwardScope scope;
    first.backward({}, /*retain_graph=*/true);
    first.backward();
  }
  Json& evidence = lab.evidence();
  evidence["ddp_forwards"] = 1;
  evidence["backwards"] = lab.cured() ? 1 : 2;
  evidence["gradient_sum"] = gradient_sum(*model);
  evidence["gradient_all_reduces"] = all_reduces(lab) - before;
}

}  // namespace bench::training
