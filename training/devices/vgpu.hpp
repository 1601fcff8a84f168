// Virtual GPUs: LibTorch devices named "vgpu:0", "vgpu:1", ... (PrivateUse1) that execute on the
// CPU and account for every byte per device, as the CUDA caching allocator would hand it out.
//
// numeric execution computes values with the CPU's kernels over the same memory; shape execution
// derives sizes only: large tensors own address space without access rights, so a program that
// takes seconds takes milliseconds and its accounting is the same to the byte.
#pragma once

#include "bench/core/case.hpp"

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <string>

namespace bench::training {

class Model;

struct VgpuOptions {
  int device_count = 1;
  Execute execute = Execute::numeric;
  std::uint64_t memory_bytes = 0;  // of one device; 0 = unlimited
};

// Registers the backend on the first call. Later calls change execution and memory size; they throw
// UsageError while vgpu tensors are alive, and may not ask for more devices than the first call did
// (the autograd engine starts one thread per device once).
void register_vgpu(const VgpuOptions& options);
const VgpuOptions& vgpu_options();
bool shape_execution();

at::Device vgpu_device(int index);
bool is_vgpu(const at::Tensor& tensor);

// Raised where a device's memory does not suffice; the text is the CUDA allocator's.
class VgpuOutOfMemoryError : public c10::OutOfMemoryError {
 public:
  using c10::OutOfMemoryError::OutOfMemoryError;
};

// Bytes allocated on a device, every allocation rounded up to kAllocationUnit.
inline constexpr std::uint64_t kAllocationUnit = 512;  // kMinBlockSize of CUDACachingAllocator
std::uint64_t current_bytes(int device);
std::uint64_t peak_bytes(int device);
void reset_peak(int device);

// Copies a CPU tensor to a device (recorded as a host-to-device copy).
at::Tensor to_vgpu(const at::Tensor& tensor, int device);

// Makes `handle` and every other holder of its TensorImpl refer to `replacement`, which may be on
// another device; requires_grad stays. Module::to refuses to cross from CPU to PrivateUse1. Must
// not be used while an autograd graph refers to the handle.
void rebind(const at::Tensor& handle, const at::Tensor& replacement);

// Moves parameters and buffers of a model (torch::nn or TorchScript) by rebinding, and tags them.
void move_model(Model& model, at::Device device);

// False where a tensor has no values to read (a large tensor under shape execution).
bool has_values(const at::Tensor& tensor);

}  // namespace bench::training
