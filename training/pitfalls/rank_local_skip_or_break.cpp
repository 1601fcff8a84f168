// One rank skips a batch whose loss is not a number: from there on the ranks' reductions pair up
// one step off, without an error, and the last one waits for nobody.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"

#include <limits>

namespace bench::training {
namespace {

constexpr int kSkipSteps = 4;
constexpr int kBadStep = 1;

}  // namespace

void rank_local_skip_or_break(Lab& lab) {
  const auto model = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  const auto ddp = lab.wrap(*model);
  const at::Tensor good = rank_input(lab);
  const bool has_bad = lab.rank() == 1;
  Json& evidence = lab.evidence();
  evidence["batches"] = kSkipSteps;
  evidence["steps"] = 0;
  evidence["skipped"] = 0;
  lab.publish_eagerly();
  for (int step = 0; step < kSkipSteps; ++step) {
    lab.phase("step " + std::to_string(step));
    clear_gradients(*model);
    const at::Tensor input =
        has_bad && step == kBadStep ? good * std::numeric_limits<float>::quiet_NaN() : good;
    const at::Tensor loss = call(*ddp, input).sum();
    const double broken = loss.isnan().cpu().item<bool>() ? 1 : 0;
    // The cure: all ranks hear of it and skip the batch together. Every forward pass needs its
    // backward pass, so the loss is replaced by one without values to learn from.
    const bool skip = lab.cured() ? lab.all_reduce_sum(broken) > 0 : broken > 0;
    if (skip) evidence["skipped"] = evidence["skipped"].get<int>() + 1;
    if (skip && !lab.cured()) continue;
    run_backward(skip ? call(*ddp, good).sum() * 0 : loss);
    descend(*model, 0.01);
    evidence["steps"] = evidence["steps"].get<int>() + 1;
  }
  lab.publish();
  if (!lab.cured()) {
    if (lab.rank() == 1) lab.phase("validation, after its last batch");
    lab.stay();
  }
}

}  // namespace bench::training
