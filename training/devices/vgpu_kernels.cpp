// Kernels that the boxed fallback cannot provide: allocation, views, resizing, copies that cross
// devices, and reading a scalar back.
#include "training/devices/boxed_call.hpp"
#include "training/devices/recorder_log.hpp"
#include "training/devices/vgpu.hpp"
#include "training/devices/vgpu_device.hpp"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <torch/library.h>

#include <limits>

namespace bench::training {
namespace {

c10::Device device_or_current(std::optional<c10::Device> device) {
  const int index = device && device->has_index() ? device->index() : current_vgpu_index();
  TORCH_CHECK(index < vgpu_options().device_count, "vgpu:", index, " does not exist; there are ",
              vgpu_options().device_count, " virtual GPUs");
  return vgpu_device(index);
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<c10::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> memory_format) {
  const c10::DeviceGuard guard(device_or_current(device));
  return at::Tensor(at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), vgpu_allocator(),
                                              kVgpuKeys, c10::dtype_or_default(dtype),
                                              memory_format));
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<c10::Device> device, std::optional<bool>) {
  return vgpu_empty(device_or_current(device).index(), C10_AS_INTARRAYREF_SLOW(size),
                    C10_AS_INTARRAYREF_SLOW(stride), c10::dtype_or_default(dtype));
}

at::Tensor view_of(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                   std::int64_t offset) {
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(self.storage()), self.key_set(), self.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return result;
}

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  const std::int64_t start = offset ? offset->expect_int() : self.storage_offset();
  return view_of(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), start);
}

at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef size,
                         c10::SymIntArrayRef stride) {
  return view_of(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                 self.storage_offset());
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
  const at::DimVector sizes = at::infer_size_dv(C10_AS_INTARRAYREF_SLOW(size), self.numel());
  const auto stride = at::detail::computeStride(self.sizes(), self.strides(), sizes);
  TORCH_CHECK(stride.has_value(),
              "view size is not compatible with input tensor's size and stride (at least one "
              "dimension spans across two contiguous subspaces). Use .reshape(...) instead.");
  return view_of(self, sizes, *stride, self.storage_offset());
}

const at::Tensor& resize_(const at::Tensor& self, c10::SymIntArrayRef size,
                          std::optional<at::MemoryFormat> memory_format) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(size);
  if (self.sizes() == sizes && !memory_format) return self;
  impl->set_sizes_contiguous(sizes);
  if (memory_format) impl->empty_tensor_restride(*memory_format);
  const std::size_t needed = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.element_size(), self.storage_offset());
  c10::StorageImpl* storage = self.storage().unsafeGetStorageImpl();
  if (needed > storage->nbytes()) resize_storage(*storage, needed);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, c10::SymInt offset,
                        c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset.expect_int());
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(size);
  if (stride.empty() && !sizes.empty()) {
    impl->set_sizes_contiguous(sizes);
  } else {
    impl->set_sizes_and_strides(sizes, C10_AS_INTARRAYREF_SLOW(stride));
  }
  return self;
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sym_sizes(),
                     source.sym_strides());
}

// NaN, or zero for integers: what a value that shape execution did not compute looks like.
at::Scalar undefined_value(at::ScalarType type) {
  if (at::isFloatingType(type) || at::isComplexType(type)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return 0;
}

void copy_values(const at::Tensor& source, const at::Tensor& destination) {
  const Block* from = block_of(source);
  Block* to = block_of(destination);
  if (to && !to->has_values) return;
  const bool readable = !from || from->has_values;
  const at::Tensor target = host_alias(destination);
  if (readable) {
    target.copy_(host_alias(source));
  } else {
    target.fill_(undefined_value(destination.scalar_type()));
  }
  if (to && (!readable || (from && !from->defined_values))) to->defined_values = false;
}

void record_device_copy(const at::Tensor& source, const at::Tensor& destination) {
  Block* from = block_of(source);
  Block* to = block_of(destination);
  LoggedOperation logged;
  logged.name = "aten::copy_";
  logged.shape = c10::str(destination.sizes());
  logged.op.device = to->device;
  logged.op.dtype = record_dtype(destination.scalar_type());
  logged.op.bytes_read = source.nbytes();
  logged.op.bytes_written = destination.nbytes();
  log_operation(std::move(logged), std::span(&from, 1), std::span(&to, 1));
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& destination, bool non_blocking) {
  copy_values(source, destination);
  if (!recording()) return destination;
  if (source.device() == destination.device()) {
    record_device_copy(source, destination);
  } else {
    const bool between_devices = is_vgpu(source) && is_vgpu(destination);
    record_copy(source, destination, !between_devices && !non_blocking);
  }
  return destination;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& destination) {
  destination.resize_(source.sizes());
  return copy_from(source, destination, false);
}

// A reduced loss lives in memory of the unreduced one's size, as on CUDA. The default kernel passes
// it on as an output of the wrong shape, which the CPU's kernel warns about; this one does not.
at::Tensor mse_loss(const at::Tensor& input, const at::Tensor& target, std::int64_t reduction) {
  const auto sizes = at::infer_size(input.sizes(), target.sizes());
  at::Tensor output = at::empty(sizes, input.options().dtype(at::result_type(input, target)));
  at::mse_loss_out(output, input, target, reduction);
  return output;
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  if (recording()) {
    record_copy(self, at::empty({}, at::dtype(self.scalar_type())), /*blocking=*/true);
  }
  if (!has_values(self)) return undefined_value(self.scalar_type());
  return host_alias(self).item();
}

}  // namespace

void register_kernels() {
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__,
                             __LINE__);
  aten.impl("empty.memory_format", &empty);
  aten.impl("empty_strided", &empty_strided);
  aten.impl("as_strided", &as_strided);
  aten.impl("_reshape_alias", &reshape_alias);
  aten.impl("view", &view);
  aten.impl("resize_", &resize_);
  aten.impl("set_.source_Storage_storage_offset", &set_storage);
  aten.impl("set_.source_Tensor", &set_tensor);
  aten.impl("_copy_from", &copy_from);
  aten.impl("_copy_from_and_resize", &copy_from_and_resize);
  aten.impl("_local_scalar_dense", &local_scalar_dense);
  aten.impl("mse_loss", &mse_loss);
}

}  // namespace bench::training
