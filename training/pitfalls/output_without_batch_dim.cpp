// DataParallel joins the replicas' outputs along dimension 0, whether or not that is the batch: the
// halves of a time-major output follow each other in time, and what is made of the weights alone
// comes once from every replica.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/call_evidence.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kSequences = 4;
constexpr std::int64_t kTimeSteps = 5;
constexpr std::int64_t kUnits = 4;
constexpr std::int64_t kPenaltyRows = 12;

// A layer at every step of (batch, time, features). Broken, its output is (time, batch, features),
// which the training loop lines up row by row with targets of that order.
void time_major(Lab& lab) {
  const auto model = lab.model(linear({.in = kUnits, .out = kUnits}), lab.seed());
  DataParallel parallel(*model, lab.devices());
  const bool turned = !lab.cured();
  const at::Tensor input =
      to_vgpu(torch::randn({kSequences, kTimeSteps, kUnits}), lab.device().index());
  const auto forward = [turned](Model& replica, const Arguments& share) -> at::IValue {
    const at::Tensor output = replica.forward(share.positional[0].toTensor());
    return turned ? output.transpose(0, 1).contiguous() : output;
  };
  const at::Tensor reference = forward(*model, {{input}, {}}).toTensor();
  const at::IValue output = shown_call(lab, parallel, {{input}, {}}, forward);
  if (!output.isTensor()) return;
  compare_rows(lab, output.toTensor(), reference);
  run_backward(output.toTensor().sum());
}

// A penalty on the weights, for each unit of the layer.
at::Tensor penalties_of(const Model& model) {
  return model.parameters().at(0).tensor.square().sum(1);
}

// The cure leaves the penalty to the training loop, which computes it once.
void regulariser(Lab& lab) {
  const auto model = lab.model(linear({.in = kUnits, .out = kUnits}), lab.seed());
  DataParallel parallel(*model, lab.devices());
  const bool inside = !lab.cured();
  const at::Tensor input = to_vgpu(torch::randn({kPenaltyRows, kUnits}), lab.device().index());
  const auto forward = [inside](Model& replica, const Arguments& share) -> at::IValue {
    const at::Tensor output = replica.forward(share.positional[0].toTensor());
    if (!inside) return output;
    return c10::ivalue::Tuple::create({output, penalties_of(replica)});
  };
  const at::IValue returned = shown_call(lab, parallel, {{input}, {}}, forward);
  if (returned.isNone()) return;
  const at::Tensor output =
      inside ? returned.toTupleRef().elements()[0].toTensor() : returned.toTensor();
  const at::Tensor penalty =
      (inside ? returned.toTupleRef().elements()[1].toTensor() : penalties_of(*model)).sum();
  lab.evidence()["penalty"] = penalty.detach().cpu().item<double>();
  lab.evidence()["penalty_of_weights"] = penalties_of(*model).sum().detach().cpu().item<double>();
  run_backward(output.sum() + penalty);
}

}  // namespace

void output_without_batch_dim(Lab& lab) {
  torch::manual_seed(lab.seed());
  lab.evidence()["batch"] = lab.form() == "time-major" ? kSequences : kPenaltyRows;
  lab.form() == "time-major" ? time_major(lab) : regulariser(lab);
}

}  // namespace bench::training
