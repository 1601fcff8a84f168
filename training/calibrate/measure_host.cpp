#include "training/calibrate/measurements.hpp"
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"

#include <torch/torch.h>

#include <algorithm>

namespace bench::training {
namespace {

// Few enough launches for a stream's queue: issuing never waits for the device.
constexpr int kBlocks = 24;
constexpr std::int64_t kChannels = 16;

// A chain of small layers, as in a residual network: the host is all that it costs.
struct LayerChain {
  at::Tensor input, convolution, weight, bias, mean, variance;

  explicit LayerChain(at::Device device) {
    const at::TensorOptions options(device);
    input = filled({2, kChannels, 8, 8}, options).requires_grad_(true);
    convolution = filled({kChannels, kChannels, 1, 1}, options).requires_grad_(true);
    weight = filled({kChannels}, options).requires_grad_(true);
    bias = filled({kChannels}, options).requires_grad_(true);
    mean = at::zeros({kChannels}, options);
    variance = at::ones({kChannels}, options);
  }

  at::Tensor forward(bool convolutions) const {
    at::Tensor x = input;
    for (int i = 0; i < kBlocks; ++i) {
      if (convolutions) {
        x = at::convolution(x, convolution, {}, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1);
      }
      x = at::batch_norm(x, weight, bias, mean, variance, true, 0.1, 1e-5, true);
      x = at::relu(x) + input;
    }
    return x;
  }

  void backward(const at::Tensor& output) const {
    (void)torch::autograd::grad({output}, {input, weight, bias}, {output.detach()});
  }
};

int recorded_kernels(const simulator::OperationGraph& graph) {
  return static_cast<int>(
      std::count_if(graph.operations.begin(), graph.operations.end(),
                    [](const auto& op) { return op.kind == simulator::OpKind::kernel; }));
}

struct Operators {
  int forward = 0;
  int backward = 0;
};

// Operations that a recording has of the chain without convolutions: host costs are per operation.
Operators count_operators() {
  const LayerChain chain(vgpu_device(0));
  Operators count;
  start_recording();
  const at::Tensor output = chain.forward(false);
  count.forward = recorded_kernels(stop_recording());
  start_recording();
  {
    const BackwardScope scope;
    chain.backward(output);
  }
  count.backward = recorded_kernels(stop_recording());
  return count;
}

struct Pass {
  double forward_ns = 0;
  double backward_ns = 0;
};

// Median host times of one pass each, the device idle before it.
Pass issue_times(const LayerChain& chain, at::Device device, bool convolutions, int repeats) {
  std::vector<double> forward, backward;
  for (int i = 0; i < repeats; ++i) {
    wait_for(device);
    double begin = host_now_ns();
    const at::Tensor output = chain.forward(convolutions);
    forward.push_back(host_now_ns() - begin);
    wait_for(device);
    begin = host_now_ns();
    chain.backward(output);
    backward.push_back(host_now_ns() - begin);
  }
  return {summary_of(forward).ns, summary_of(backward).ns};
}

}  // namespace

void measure_host(const CalibrationTarget& target, CalibrationSamples& samples) {
  constexpr int kWarmups = 3;
  const int repeats = target.quick ? 5 : 21;
  {
    const at::NoGradGuard no_grad;
    at::Tensor one = filled({1}, at::TensorOptions(target.device()));
    samples.launch_ns =
        CallTimer(target.device(), target.quick).time([&] { (void)one.add_(1); }).ns;
  }
  const at::AutoGradMode recording(true);
  const Operators operators = count_operators();
  const LayerChain chain(target.device());
  (void)issue_times(chain, target.device(), true, kWarmups);
  const Pass plain = issue_times(chain, target.device(), false, repeats);
  const Pass with = issue_times(chain, target.device(), true, repeats);
  samples.host.forward_ns = plain.forward_ns / operators.forward;
  samples.host.backward_ns = plain.backward_ns / operators.backward;
  const double each = (with.forward_ns - plain.forward_ns) / kBlocks;
  samples.host.convolution_ns = std::max(0.0, each - samples.host.forward_ns);
}

}  // namespace bench::training
