// Gradients are accumulated over several micro-batches, and every one of them is all-reduced.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <chrono>

namespace bench::training {
namespace {

constexpr int kMicroBatches = 4;
constexpr int kAccumulatedSteps = 10;
constexpr std::int64_t kAccumulatedWidth = 256;

}  // namespace

void accumulation_without_no_sync(Lab& lab) {
  const auto model =
      lab.model(linear({.in = kAccumulatedWidth, .out = kAccumulatedWidth}), lab.seed());
  const auto ddp = lab.wrap(*model);
  const at::Tensor input = rank_input(lab, {4, kAccumulatedWidth});
  const int before = all_reduces(lab);
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < kAccumulatedSteps; ++step) {
    clear_gradients(*model);
    for (int micro = 0; micro < kMicroBatches; ++micro) {
      const bool last = micro + 1 == kMicroBatches;
      run_backward(call(*ddp, input, last || !lab.cured()).sum() / kMicroBatches);
    }
    if (step == 0) lab.evidence()["gradient_sum"] = gradient_sum(*model);
    descend(*model, 1e-6);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  Json& evidence = lab.evidence();
  evidence["micro_batches"] = kMicroBatches;
  evidence["optimizer_steps"] = kAccumulatedSteps;
  evidence["reductions"] = all_reduces(lab) - before;
  evidence["bucket_bytes"] = ddp->bucket_bytes();
  evidence["step_seconds"] = seconds.count() / kAccumulatedSteps;
}

}  // namespace bench::training
