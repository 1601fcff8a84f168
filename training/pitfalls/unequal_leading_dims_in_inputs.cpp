// DataParallel cuts every tensor argument on its own and pairs the shards until the shortest runs
// out: the rows of the longer tensors that are left over are never computed.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/call_evidence.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kPairedRows = 8;
constexpr std::int64_t kPairedWidth = 4;

at::Tensor random_rows(const Lab& lab, std::int64_t rows) {
  return to_vgpu(torch::randn({rows, kPairedWidth}), lab.device().index());
}

// The loss is inside, so that nothing outside has a shape to complain of.
at::IValue loss_of(const at::Tensor& output, const at::Tensor& target) {
  return torch::mse_loss(output, target).unsqueeze(0);
}

// model(x, positions, target) with one row of positions for the whole batch.
at::IValue one_row(Lab& lab, DataParallel& parallel) {
  at::Tensor positions = random_rows(lab, 1);
  if (lab.cured()) positions = positions.expand({kPairedRows, kPairedWidth});
  const Arguments arguments{
      {random_rows(lab, kPairedRows), positions, random_rows(lab, kPairedRows)}, {}};
  return shown_call(lab, parallel, arguments, [](Model& replica, const Arguments& share) {
    const auto& own = share.positional;
    const at::Tensor output = replica.forward(own[0].toTensor() + own[1].toTensor());
    return loss_of(output, own[2].toTensor());
  });
}

// model(source, target) with batches of two loaders, one of which came to half of the other.
at::IValue two_loaders(Lab& lab, DataParallel& parallel, bool by_keyword) {
  const at::Tensor source = random_rows(lab, kPairedRows);
  const at::Tensor target = random_rows(lab, lab.cured() ? kPairedRows : kPairedRows / 2);
  const Arguments arguments =
      by_keyword ? Arguments{{source}, {{"target", target}}} : Arguments{{source, target}, {}};
  return shown_call(lab, parallel, arguments, [](Model& replica, const Arguments& share) {
    const at::IValue& other =
        share.keywords.empty() ? share.positional[1] : share.keywords[0].second;
    const at::Tensor output = replica.forward(share.positional[0].toTensor());
    return loss_of(output, replica.forward(other.toTensor()).detach());
  });
}

}  // namespace

void unequal_leading_dims_in_inputs(Lab& lab) {
  const auto model = lab.model(linear({.in = kPairedWidth, .out = kPairedWidth}), lab.seed());
  DataParallel parallel(*model, lab.devices());
  torch::manual_seed(lab.seed());
  const std::string form = lab.form();
  const at::IValue losses =
      form == "one-row" ? one_row(lab, parallel) : two_loaders(lab, parallel, form == "keyword");
  lab.evidence()["batch"] = kPairedRows;
  if (losses.isTensor()) run_backward(losses.toTensor().mean());
}

}  // namespace bench::training
