#include "training/strategies/libtorch_data_parallel.hpp"

#include "training/devices/recorder.hpp"

#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/nn/parallel/data_parallel.h>

namespace bench::training {
namespace {

using simulator::MemoryCategory;
using torch::autograd::variable_list;

// The gradient of one parameter: the replicas' gradients one by one onto the primary device.
struct ReduceAddBackward : torch::autograd::Node {
  ReduceAddBackward(torch::autograd::edge_list edges, at::Device destination)
      : Node(std::move(edges)), device(destination) {}

  std::string name() const override { return "ReduceAdd"; }

  variable_list apply(variable_list&& gradients) override {
    const PhaseScope scope(Phase::reduce);
    at::Tensor sum;
    for (const auto& gradient : gradients) {
      if (!gradient.defined()) continue;
      if (!sum.defined()) {
        const CategoryScope category(MemoryCategory::gradients);
        sum = at::zeros_like(gradient, gradient.options().device(device));
      }
      const CategoryScope category(MemoryCategory::buckets);
      sum.add_(gradient.to(device));
    }
    return {sum};
  }

  at::Device device;
};

std::int64_t total_elements(const std::vector<at::Tensor>& tensors) {
  std::int64_t count = 0;
  for (const auto& tensor : tensors) count += tensor.numel();
  return count;
}

std::vector<at::Tensor> copy_each(const std::vector<at::Tensor>& tensors, at::Device device,
                                  MemoryCategory kind) {
  const CategoryScope category(kind);
  std::vector<at::Tensor> copies;
  for (const auto& tensor : tensors) {
    copies.push_back(tensor.device() == device ? tensor.detach().clone()
                                               : tensor.detach().to(device));
  }
  return copies;
}

}  // namespace

LibtorchDataParallel::LibtorchDataParallel(Model& model, const std::vector<at::Device>& devices)
    : model_(model), devices_(devices), threads_(devices.size()) {
  if (devices[0].is_cuda()) network_ = model.torch_module();
  if (network_ == nullptr) replicas_ = std::make_unique<Replicas>(model, devices);
}

void LibtorchDataParallel::clone_to(std::size_t device, Replicas::Copies& copies) {
  // Cloneable::clone calls reset(), which initialises every parameter anew on the host.
  record_host("reset", static_cast<std::uint32_t>(total_elements(replicas_->parameters())));
  copies.parameters.push_back(
      copy_each(replicas_->parameters(), devices_[device], MemoryCategory::parameters));
  copies.buffers.push_back(
      copy_each(replicas_->buffers(), devices_[device], MemoryCategory::buffers));
}

void LibtorchDataParallel::replicate(std::size_t count) {
  replicas_->release();
  Replicas::Copies copies;
  for (std::size_t device = 0; device < count; ++device) clone_to(device, copies);
  std::vector<std::shared_ptr<ReduceAddBackward>> nodes;
  for (std::size_t i = 0; i < replicas_->parameters().size(); ++i) {
    const auto& parameter = replicas_->parameters()[i];
    if (!parameter.requires_grad()) continue;
    auto edges = torch::autograd::collect_next_edges(parameter);
    nodes.push_back(std::make_shared<ReduceAddBackward>(std::move(edges), devices_[0]));
    for (const auto& row : copies.parameters) nodes.back()->add_input_metadata(row[i]);
  }
  replicas_->bind(copies, [&](std::size_t device, std::size_t index) {
    return torch::autograd::Edge(nodes[index], static_cast<std::uint32_t>(device));
  });
}

torch::Tensor LibtorchDataParallel::forward(const torch::Tensor& input, bool, PhaseSink& phases) {
  phases.enter(devices_.size() == 1 || network_ != nullptr ? Phase::forward : Phase::scatter);
  if (network_ != nullptr) return torch::nn::parallel::data_parallel(network_, input, devices_);
  if (devices_.size() == 1) return model_.forward(input);
  const auto chunks = scatter(input, devices_);
  phases.enter(Phase::broadcast);
  replicate(chunks.size());
  phases.enter(Phase::forward);
  std::vector<at::Tensor> outputs(chunks.size());
  threads_.run(chunks.size(), [&](std::size_t i) {
    const c10::DeviceGuard guard(devices_[i]);
    outputs[i] = (*replicas_)[i].forward(chunks[i]).to(devices_[i]);
  });
  phases.enter(Phase::gather);
  const auto others = static_cast<double>(chunks.size() - 1);
  bytes_communicated_ =
      others * (2 * total_bytes(replicas_->parameters()) + total_bytes(replicas_->buffers()));
  return gather(outputs, devices_[0]);
}

std::map<std::string, double> LibtorchDataParallel::counters() const {
  if (replicas_ == nullptr) return {};
  return {{"bytes_communicated", bytes_communicated_}};
}

}  // namespace bench::training
