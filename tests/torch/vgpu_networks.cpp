#include "tests/torch/vgpu_networks.hpp"

#include "training/devices/recorder.hpp"

namespace bench::training {
namespace {

namespace nn = torch::nn;

struct ResidualBlock : nn::Module {
  explicit ResidualBlock(int channels)
      : conv1(nn::Conv2dOptions(channels, channels, 3).padding(1).bias(false)),
        conv2(nn::Conv2dOptions(channels, channels, 3).padding(1).bias(false)),
        norm1(channels),
        norm2(channels) {
    register_module("conv1", conv1);
    register_module("norm1", norm1);
    register_module("conv2", conv2);
    register_module("norm2", norm2);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::relu(norm2(conv2(torch::relu(norm1(conv1(x))))) + x);
  }
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d norm1, norm2;
};

}  // namespace

void use_vgpu(Execute execute, std::uint64_t memory_bytes) {
  register_vgpu({kTestDevices, execute, memory_bytes});
}

Network make_mlp() {
  torch::manual_seed(1);
  nn::Sequential module(nn::Linear(64, 96), nn::ReLU(), nn::Linear(96, 10));
  return {"mlp", module, {16, 64}};
}

Network make_conv_net() {
  torch::manual_seed(1);
  nn::Sequential module(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)),
                        nn::BatchNorm2d(8), nn::ReLU(), nn::MaxPool2d(2),
                        std::make_shared<ResidualBlock>(8), std::make_shared<ResidualBlock>(8),
                        nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(8, 10));
  return {"conv_net", module, {4, 3, 32, 32}};
}

void move_to_vgpu(torch::nn::Module& module, int device) {
  for (const torch::Tensor& parameter : module.parameters()) {
    CategoryScope scope(simulator::MemoryCategory::parameters);
    rebind(parameter, to_vgpu(parameter, device));
  }
  for (const torch::Tensor& buffer : module.buffers()) {
    CategoryScope scope(simulator::MemoryCategory::buffers);
    rebind(buffer, to_vgpu(buffer, device));
  }
}

torch::Tensor training_step(const Network& network, torch::optim::Optimizer& optimizer,
                            const torch::Tensor& input, const torch::Tensor& target) {
  nn::Sequential module = network.module;
  torch::Tensor loss;
  {
    PhaseScope phase(simulator::Phase::forward);
    loss = torch::cross_entropy_loss(module->forward(input), target);
  }
  run_backward(loss);
  PhaseScope phase(simulator::Phase::optimizer);
  optimizer.step();
  optimizer.zero_grad();
  return loss.detach();
}

TrainingRun train(const Network& network, int device, int steps) {
  nn::Sequential module = network.module;
  if (device >= 0) move_to_vgpu(*module, device);
  torch::optim::SGD optimizer(module->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  torch::manual_seed(2);
  TrainingRun run;
  for (int step = 0; step < steps; ++step) {
    torch::Tensor input = torch::randn(network.input_shape);
    torch::Tensor target = torch::randint(network.classes, {network.input_shape[0]});
    if (device >= 0) {
      input = to_vgpu(input, device);
      target = to_vgpu(target, device);
    }
    run.losses.push_back(training_step(network, optimizer, input, target).item<double>());
  }
  for (const torch::Tensor& parameter : module->parameters()) {
    run.parameters.push_back(parameter.detach().cpu().clone());
  }
  return run;
}

}  // namespace bench::training
