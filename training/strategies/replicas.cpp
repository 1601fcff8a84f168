#include "training/strategies/replicas.hpp"

#include "training/devices/recorder.hpp"
#include "training/devices/recorder_order.hpp"
#include "training/devices/vgpu.hpp"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>

namespace bench::training {
namespace {

using simulator::MemoryCategory;

// Sits between a replica's parameter and the reduction. When it runs, every operation that used the
// parameter has run backward, so the replica's copy is no longer needed.
struct ReleaseReplica : torch::autograd::Node {
  ReleaseReplica(at::Tensor replica_tensor, torch::autograd::Edge next)
      : Node(torch::autograd::edge_list{std::move(next)}), replica(std::move(replica_tensor)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    for (const auto& gradient : gradients) tag(gradient, MemoryCategory::gradients);
    if (replica.defined()) replica.unsafeGetTensorImpl()->release_resources();
    replica.reset();
    return std::move(gradients);
  }

  at::Tensor replica;
};

struct GatherOutputs : torch::autograd::Function<GatherOutputs> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::TensorList outputs,
                            at::Device device) {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> devices;
    std::int64_t total = 0;
    for (const auto& output : outputs) {
      sizes.push_back(output.size(0));
      devices.push_back(output.device().index());
      total += output.size(0);
    }
    context->saved_data["sizes"] = sizes;
    context->saved_data["devices"] = devices;
    auto shape = outputs[0].sizes().vec();
    shape[0] = total;
    const CategoryScope category(MemoryCategory::gathered_outputs);
    auto gathered = at::empty(shape, outputs[0].options().device(device));
    std::int64_t begin = 0;
    for (const auto& output : outputs) {
      gathered.narrow(0, begin, output.size(0)).copy_(output, /*non_blocking=*/true);
      begin += output.size(0);
    }
    return gathered;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto sizes = context->saved_data["sizes"].toIntVector();
    const auto devices = context->saved_data["devices"].toIntVector();
    const auto& gradient = gradients[0];
    torch::autograd::variable_list scattered;
    const auto chunks = gradient.split_with_sizes(sizes, 0);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const at::Device device(gradient.device().type(), static_cast<at::DeviceIndex>(devices[i]));
      scattered.push_back(chunks[i].to(device, chunks[i].scalar_type(), /*non_blocking=*/true));
    }
    scattered.emplace_back();  // the device argument
    // One node sends every replica its part before any of them goes on.
    read_after_last(gradient);
    return scattered;
  }
};

template <class Handles>
std::vector<at::Tensor> tensors_of(const Handles& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& entry : named) tensors.push_back(entry.tensor);
  return tensors;
}

}  // namespace

Replicas::Replicas(const Model& master, std::vector<at::Device> devices)
    : devices_(std::move(devices)),
      parameters_(tensors_of(master.parameters())),
      buffers_(tensors_of(master.buffers())),
      module_count_(master.module_count()) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Shell shell{master.shell(), {}, {}};
    shell.model->train(true);
    shell.parameters = tensors_of(shell.model->parameters());
    shell.buffers = tensors_of(shell.model->buffers());
    shells_.push_back(std::move(shell));
  }
  release();
}

void Replicas::release() {
  for (auto& shell : shells_) {
    for (auto& tensor : shell.parameters) tensor.unsafeGetTensorImpl()->release_resources();
    for (auto& tensor : shell.buffers) tensor.unsafeGetTensorImpl()->release_resources();
  }
}

void Replicas::bind(const Copies& copies, const EdgeOf& edge) {
  for (std::size_t device = 0; device < copies.parameters.size(); ++device) {
    auto& shell = shells_[device];
    std::size_t trainable = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      rebind(shell.parameters[i], copies.parameters[device][i]);
      if (!parameters_[i].requires_grad()) continue;
      auto node = std::make_shared<ReleaseReplica>(shell.parameters[i], edge(device, trainable++));
      torch::autograd::set_history(shell.parameters[i], node);
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      rebind(shell.buffers[i], copies.buffers[device][i]);
    }
  }
}

std::vector<at::Tensor> aliases(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const auto& tensor : tensors) result.push_back(tensor.detach());
  return result;
}

std::vector<at::Tensor> scatter(const at::Tensor& input, const std::vector<at::Device>& devices) {
  auto chunks = input.chunk(static_cast<std::int64_t>(devices.size()), 0);
  const CategoryScope category(MemoryCategory::inputs);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    chunks[i] = chunks[i].to(devices[i], chunks[i].scalar_type(), /*non_blocking=*/true);
  }
  return chunks;
}

at::Tensor gather(const std::vector<at::Tensor>& outputs, at::Device device) {
  return GatherOutputs::apply(at::TensorList(outputs), device);
}

}  // namespace bench::training
