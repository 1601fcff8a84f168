// Small networks for the tests of virtual GPUs, and ways to move and train them.
#pragma once

#include "training/devices/vgpu.hpp"

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

namespace bench::training {

// The largest device count any test of the program asks for, with the given execution.
void use_vgpu(Execute execute, std::uint64_t memory_bytes = 0);
inline constexpr int kTestDevices = 4;

struct Network {
  std::string name;
  torch::nn::Sequential module{nullptr};
  std::vector<std::int64_t> input_shape;  // of a batch
  std::int64_t classes = 10;
};

Network make_mlp();
// Convolutions with batch norm, pooling, a residual sum and dropout-free: as in small ResNets.
Network make_conv_net();

void move_to_vgpu(torch::nn::Module& module, int device);

struct TrainingRun {
  std::vector<double> losses;
  std::vector<torch::Tensor> parameters;  // on the CPU
};
// `steps` steps of SGD with momentum on seeded batches; device -1 is the CPU.
TrainingRun train(const Network& network, int device, int steps);
// One step on given data: forward, loss, backward, optimizer.
torch::Tensor training_step(const Network& network, torch::optim::Optimizer& optimizer,
                            const torch::Tensor& input, const torch::Tensor& target);

}  // namespace bench::training
