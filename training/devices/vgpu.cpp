#include "training/devices/vgpu.hpp"

#include "bench/core/error.hpp"

#include "training/devices/recorder.hpp"
#include "training/devices/vgpu_device.hpp"
#include "training/devices/vgpu_memory.hpp"
#include "training/models/model.hpp"

#include <torch/torch.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace bench::training {
namespace {

VgpuOptions& options_storage() {
  static VgpuOptions options;
  return options;
}

void check_options(const VgpuOptions& options) {
  if (options.device_count < 1 || options.device_count > kMaxDevices) {
    throw UsageError("vgpu: " + std::to_string(options.device_count) +
                     " devices asked for; expected 1 to " + std::to_string(kMaxDevices));
  }
}

// An aborted backward pass leaves tensors with autograd's device threads, which let go of them when
// they wake up next.
bool all_tensors_released() {
  constexpr std::chrono::seconds kPatience{1};
  constexpr std::chrono::milliseconds kNap{1};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (live_block_count() > 0) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

void change_options(const VgpuOptions& options, int registered_devices) {
  if (options.device_count > registered_devices) {
    throw UsageError("vgpu: registered with " + std::to_string(registered_devices) +
                     " devices; a later call cannot ask for " +
                     std::to_string(options.device_count));
  }
  if (!all_tensors_released()) {
    throw UsageError("vgpu: options cannot change while " + std::to_string(live_block_count()) +
                     " tensors are alive on virtual GPUs");
  }
  options_storage().execute = options.execute;
  options_storage().memory_bytes = options.memory_bytes;
}

}  // namespace

void register_vgpu(const VgpuOptions& options) {
  static std::mutex mutex;
  static int registered_devices = 0;
  std::scoped_lock lock(mutex);
  check_options(options);
  if (registered_devices > 0) return change_options(options, registered_devices);
  options_storage() = options;
  registered_devices = options.device_count;
  register_device_guard();
  register_fallback();
  register_kernels();
}

const VgpuOptions& vgpu_options() { return options_storage(); }
bool shape_execution() { return options_storage().execute == Execute::shape; }

at::Device vgpu_device(int index) {
  return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(index)};
}

bool is_vgpu(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::kPrivateUse1;
}

at::Tensor to_vgpu(const at::Tensor& tensor, int device) {
  torch::NoGradGuard no_grad;
  // Expanded tensors have no strides of their own to keep.
  const at::Tensor source = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  const at::Tensor result = at::empty_strided(source.sizes(), source.strides(),
                                              source.options().device(vgpu_device(device)));
  return result.copy_(source);
}

void rebind(const at::Tensor& handle, const at::Tensor& replacement) {
  const bool requires_grad = handle.requires_grad();
  const at::Tensor source = replacement.detach();
  handle.unsafeGetTensorImpl()->set_autograd_meta(nullptr);
  handle.unsafeGetTensorImpl()->shallow_copy_from(source.getIntrusivePtr());
  // Key sets differ between backends; shallow_copy_from has taken over the replacement's.
  if (requires_grad) handle.unsafeGetTensorImpl()->set_requires_grad(true);
}

void move_model(Model& model, at::Device device) {
  const auto move = [&](const at::Tensor& handle, simulator::MemoryCategory category) {
    if (handle.device() == device) return;
    CategoryScope scope(category);
    rebind(handle, device.type() == c10::kPrivateUse1 && handle.is_cpu()
                       ? to_vgpu(handle, device.index())
                       : handle.detach().to(device));
    tag(handle, category);
  };
  for (const NamedTensor& item : model.parameters()) {
    move(item.tensor, simulator::MemoryCategory::parameters);
  }
  for (const NamedTensor& item : model.buffers()) {
    move(item.tensor, simulator::MemoryCategory::buffers);
  }
}

bool has_values(const at::Tensor& tensor) {
  const Block* block = block_of(tensor);
  return !block || (block->has_values && block->defined_values);
}

}  // namespace bench::training
