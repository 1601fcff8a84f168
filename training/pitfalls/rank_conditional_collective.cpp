// A collective that not all ranks take part in, or that they issue in different orders.
#include "training/devices/vgpu.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

void broadcast_one(Lab& lab) {
  std::vector<at::Tensor> tensors{to_vgpu(torch::ones({64}), lab.device().index())};
  lab.group()->broadcast(tensors)->wait();
}

void reduce_metric(Lab& lab) {
  if (lab.cured() || lab.rank() == 0) {
    lab.phase("all_reduce of the metric");
    lab.all_reduce_sum(1);
  }
}

void in_different_orders(Lab& lab) {
  const bool swapped = !lab.cured() && lab.rank() == 1;
  lab.phase("all_reduce and broadcast");
  if (swapped) broadcast_one(lab);
  lab.all_reduce_sum(1);
  if (!swapped) broadcast_one(lab);
}

void skip_barrier(Lab& lab) {
  lab.phase("barrier");
  c10d::BarrierOptions options;
  options.device = lab.device();
  if (lab.cured() || lab.rank() == 0) lab.group()->barrier(options)->wait();
}

}  // namespace

void rank_conditional_collective(Lab& lab) {
  lab.all_reduce_sum(1);  // all ranks are there
  lab.publish_eagerly();
  lab.attempt([&] {
    if (lab.form() == "different-order") {
      in_different_orders(lab);
    } else if (lab.form() == "barrier-skipped") {
      skip_barrier(lab);
    } else {
      reduce_metric(lab);
    }
  });
  lab.publish();
  if (!lab.cured() && lab.rank() == 1) lab.stay();
}

}  // namespace bench::training
