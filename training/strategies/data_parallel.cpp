#include "training/strategies/data_parallel.hpp"

#include "training/devices/recorder.hpp"

#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/functions/utils.h>

namespace bench::training {
namespace {

using torch::autograd::variable_list;

// The backward of the broadcast of all parameters: gradients of every copy of every parameter come
// in, their sums over the devices go out to the primary's parameters.
struct BroadcastBackward : torch::autograd::Node {
  BroadcastBackward(torch::autograd::edge_list edges, std::size_t count, PhaseSink& sink)
      : Node(std::move(edges)), parameters(count), phases(sink) {}

  std::string name() const override { return "BroadcastBackward"; }

  variable_list apply(variable_list&& gradients) override {
    const PhaseScope scope(Phase::reduce);
    phases.enter_in_backward(Phase::reduce);
    TensorGrid grid;
    for (std::size_t begin = 0; begin < gradients.size(); begin += parameters) {
      auto& row = grid.emplace_back();
      for (std::size_t i = begin; i < begin + parameters; ++i) {
        // A parameter that this replica did not use counts as zero, as Python's function has it.
        row.push_back(gradients[i].defined() ? std::move(gradients[i])
                                             : input_metadata(i).zeros_like());
      }
    }
    gradients.clear();
    for (const auto& row : grid) {
      for (const auto& gradient : row) tag(gradient, simulator::MemoryCategory::gradients);
    }
    return reduce_add_coalesced(grid);
  }

  std::size_t parameters;
  PhaseSink& phases;
};

std::vector<at::Tensor> trainable(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const auto& tensor : tensors) {
    if (tensor.requires_grad()) result.push_back(tensor);
  }
  return result;
}

}  // namespace

DataParallel::DataParallel(Model& model, const std::vector<at::Device>& devices)
    : model_(model), replicas_(model, devices), threads_(devices.size()) {}

void DataParallel::replicate(std::size_t count, PhaseSink& phases) {
  replicas_.release();
  const auto& all = replicas_.devices();
  const std::vector<at::Device> devices(all.begin(), all.begin() + static_cast<long>(count));
  Replicas::Copies copies;
  const auto parameters = aliases(replicas_.parameters());
  const auto buffers = aliases(replicas_.buffers());
  copies.parameters = broadcast_coalesced(parameters, devices);
  copies.buffers = broadcast_coalesced(buffers, devices);
  const auto learnt = trainable(replicas_.parameters());
  auto node = std::make_shared<BroadcastBackward>(torch::autograd::collect_next_edges(learnt),
                                                  learnt.size(), phases);
  for (const auto& row : copies.parameters) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (replicas_.parameters()[i].requires_grad()) node->add_input_metadata(row[i]);
    }
  }
  record_host("replicate", static_cast<std::uint32_t>(replicas_.module_count() * count));
  replicas_.bind(copies, [&](std::size_t device, std::size_t index) {
    return torch::autograd::Edge(node, static_cast<std::uint32_t>(device * learnt.size() + index));
  });
  // Broadcast to, and reduction from, every device but the primary.
  bytes_communicated_ = static_cast<double>(count - 1) *
                        (total_bytes(parameters) + total_bytes(buffers) + total_bytes(learnt));
}

torch::Tensor DataParallel::forward(const torch::Tensor& input, bool, PhaseSink& phases) {
  const auto of_its_input = [](Model& replica, const Arguments& share) -> at::IValue {
    return replica.forward(share.positional[0].toTensor());
  };
  return call({{input}, {}}, of_its_input, phases).toTensor();
}

at::IValue DataParallel::call(const Arguments& arguments, const ReplicaForward& forward,
                              PhaseSink& phases) {
  const auto& devices = replicas_.devices();
  if (devices.size() == 1) {
    phases.enter(Phase::forward);
    return forward(model_, arguments);
  }
  phases.enter(Phase::scatter);
  const auto shares = scatter_arguments(arguments, devices);
  phases.enter(Phase::broadcast);
  replicate(shares.size(), phases);
  phases.enter(Phase::forward);
  std::vector<at::IValue> outputs(shares.size());
  threads_.run(shares.size(), [&](std::size_t i) {
    const c10::DeviceGuard guard(devices[i]);
    outputs[i] = forward(replicas_[i], shares[i]);
  });
  phases.enter(Phase::gather);
  return gather_value(outputs, devices[0]);
}

std::map<std::string, double> DataParallel::counters() const {
  return {{"bytes_communicated", bytes_communicated_}};
}

}  // namespace bench::training
