#include "training/calibrate/measurements.hpp"
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"

#include <torch/torch.h>

#include <stdexcept>

namespace bench::training {
namespace {

// More notes than these help nobody.
constexpr std::size_t kMostNotes = 8;
// Tensors of a call may take this share of a device's memory: inputs, outputs and workspaces.
constexpr double kMemoryShare = 0.2;
constexpr double kBf16Since = 8;  // compute capability

std::vector<at::ScalarType> types_of(const CalibrationTarget& target,
                                     const CalibrationSamples& samples) {
  // 16-bit kernels of CPUs say nothing about what anybody trains with.
  if (!target.device().is_cuda()) return {at::kFloat};
  if (samples.compute_capability < kBf16Since) return {at::kFloat, at::kHalf};
  return {at::kFloat, at::kHalf, at::kBFloat16};
}

void note(CalibrationSamples& samples, const std::string& text) {
  if (samples.notes.size() < kMostNotes) samples.notes.push_back(text);
}

// A GPU that was idle starts slowly; half a second of products brings its clocks up.
void warm_up(const CalibrationTarget& target) {
  if (!target.device().is_cuda()) return;
  constexpr double kWarmUpNs = 0.5e9;
  const at::Tensor x = filled({2048, 2048}, at::TensorOptions(target.device()));
  for (const double begin = host_now_ns(); host_now_ns() - begin < kWarmUpNs;) {
    (void)at::mm(x, x);
    wait_for(target.device());
  }
}

}  // namespace

void prepare_calibration() { register_vgpu({1, Execute::shape, 0}); }

OperationSample recorded_call(const OperatorCall& call, at::ScalarType type) {
  const Call run = call.prepare(at::TensorOptions(vgpu_device(0)).dtype(type));
  start_recording();
  {
    const BackwardScope backward;
    run();
  }
  const simulator::OperationGraph graph = stop_recording();
  const simulator::Operation* found = nullptr;
  int kernels = 0;
  for (const simulator::Operation& op : graph.operations) {
    if (op.kind != simulator::OpKind::kernel) continue;
    found = &op;
    ++kernels;
  }
  if (kernels != 1) {
    throw std::runtime_error("calibration: " + call.label + " is recorded as " +
                             std::to_string(kernels) + " operations, expected one");
  }
  OperationSample sample;
  sample.name = graph.names[found->name];
  sample.shape = graph.names[found->shape];
  sample.dtype = found->dtype;
  sample.flops = found->flops;
  sample.bytes_read = found->bytes_read;
  sample.bytes_written = found->bytes_written;
  sample.launches = found->launches;
  return sample;
}

void measure_operators(const CalibrationTarget& target, CalibrationSamples& samples) {
  const at::NoGradGuard no_grad;
  const CallTimer timer(target.device(), target.quick);
  warm_up(target);
  const auto calls = operator_calls(call_range(target.device(), target.quick));
  const double most_bytes = kMemoryShare * static_cast<double>(samples.memory_bytes);
  for (const at::ScalarType type : types_of(target, samples)) {
    const at::TensorOptions options = at::TensorOptions(target.device()).dtype(type);
    for (const OperatorCall& call : calls) {
      if (call.bytes > most_bytes) continue;
      OperationSample sample = recorded_call(call, type);
      try {
        const CallTime time = timer.time(call.prepare(options));
        sample.ns = time.ns;
        sample.spread = time.spread;
        samples.operations.push_back(std::move(sample));
      } catch (const c10::Error& error) {
        note(samples, call.label + " in " + c10::toString(type) + ": " +
                          std::string(error.what_without_backtrace()).substr(0, 120));
      }
      target.heartbeat();
    }
  }
}

}  // namespace bench::training
