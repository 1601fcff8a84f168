// One rank's data gives a batch more than the other's: its last all-reduce has no partner.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

constexpr int kFewestBatches = 4;

// Training until the rank's own batches are used up, or (the cure) until those of any rank are.
void train_uneven(Lab& lab) {
  const auto model = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  const auto ddp = lab.wrap(*model);
  const at::Tensor input = to_vgpu(torch::ones({2, 4}), lab.device().index());
  const int batches = kFewestBatches + lab.rank();
  lab.evidence()["batches"] = batches;
  lab.evidence()["steps"] = 0;
  for (int step = 0; step < batches; ++step) {
    // The cure: every step asks whether all ranks have a batch left, and all stop together.
    const bool all_have_one =
        !lab.cured() || lab.all_reduce_sum(1) == static_cast<double>(lab.world_size());
    if (!all_have_one) break;
    lab.phase("step " + std::to_string(step));
    clear_gradients(*model);
    run_backward(call(*ddp, input).sum());
    descend(*model, 0.01);
    lab.evidence()["steps"] = step + 1;
  }
  // The rank that has run out answers its peers' question once more, with no.
  if (lab.cured() && lab.rank() == 0) lab.all_reduce_sum(0);
}

}  // namespace

void uneven_batches_per_rank(Lab& lab) {
  lab.publish_eagerly();
  lab.attempt([&] { train_uneven(lab); });
  lab.publish();
  // The rank with fewer batches leaves, and its process ends; or it stays, busy with validation.
  if (lab.cured() || lab.form() == "peer-leaves") return;
  if (lab.rank() == 0) lab.phase("validation, after its last batch");
  lab.stay();
}

}  // namespace bench::training
