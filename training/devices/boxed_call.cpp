#include "training/devices/boxed_call.hpp"

#include "training/devices/operator_facts.hpp"
#include "training/devices/vgpu.hpp"
#include "training/devices/vgpu_device.hpp"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/op_registration/adaption.h>

#include <algorithm>

namespace bench::training {
namespace {

at::Tensor tensor_over(c10::Storage storage, c10::DispatchKey key, const at::Tensor& like) {
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), like.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(),
                                                      like.storage_offset());
  return result;
}

// A CPU scalar next to vgpu tensors: Meta kernels need it as a Meta tensor.
at::Tensor meta_scalar(const at::Tensor& scalar) {
  at::Tensor result =
      at::empty_strided(scalar.sizes(), scalar.strides(), scalar.options().device(at::kMeta));
  result.unsafeGetTensorImpl()->set_wrapped_number(
      scalar.unsafeGetTensorImpl()->is_wrapped_number());
  return result;
}

bool same_geometry(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset();
}

}  // namespace

at::Tensor vgpu_tensor(c10::Storage storage, at::ScalarType dtype, at::IntArrayRef sizes,
                       at::IntArrayRef strides, std::int64_t offset) {
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), kVgpuKeys,
                                                               at::scalarTypeToTypeMeta(dtype));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return result;
}

at::Tensor host_alias(const at::Tensor& tensor) {
  const Block* block = block_of(tensor);
  return block ? tensor_over(block->cpu_twin, c10::DispatchKey::CPU, tensor) : tensor;
}

at::Tensor vgpu_empty(int device, at::IntArrayRef sizes, at::IntArrayRef strides,
                      at::ScalarType dtype) {
  const c10::DeviceGuard guard(vgpu_device(device));
  return at::Tensor(
      at::detail::empty_strided_generic(sizes, strides, vgpu_allocator(), kVgpuKeys, dtype));
}

BoxedCall::BoxedCall(const OperatorFacts& facts, torch::jit::Stack* stack)
    : facts_(facts), stack_(stack) {
  const auto arguments = torch::jit::last(*stack, facts.arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (facts.arguments[i] != ArgumentKind::other && facts.arguments[i] != ArgumentKind::device) {
      collect(arguments[i], static_cast<std::uint16_t>(i));
    }
  }
  arguments_.assign(arguments.begin(), arguments.end());
  choose_device();
  check_devices();
}

void BoxedCall::collect(const c10::IValue& value, std::uint16_t argument) {
  if (value.isTensor()) {
    add(value.toTensor(), argument);
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) add(tensor, argument);
  } else if (value.isList()) {  // List<optional<Tensor>>
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor()) add(item.toTensor(), argument);
    }
  }
}

void BoxedCall::add(const at::Tensor& tensor, std::uint16_t argument) {
  if (!tensor.defined()) return;
  tensors_.push_back({tensor,
                      {},
                      is_vgpu(tensor) ? block_of(tensor) : nullptr,
                      argument,
                      facts_.written[argument]});
}

void BoxedCall::choose_device() {
  device_ = current_vgpu_index();
  for (std::size_t i = 0; i < facts_.arguments.size(); ++i) {
    if (facts_.arguments[i] != ArgumentKind::device || !arguments_[i].isDevice()) continue;
    if (arguments_[i].toDevice().has_index()) device_ = arguments_[i].toDevice().index();
  }
  for (const TensorArgument& item : tensors_) {
    if (!is_vgpu(item.original)) continue;
    device_ = item.original.device().index();
    return;
  }
}

void BoxedCall::check_devices() {
  std::optional<c10::Device> common;
  for (const TensorArgument& item : tensors_) {
    if (is_vgpu(item.original)) {
      common = item.original.device();
      break;
    }
  }
  if (!common) return;
  for (const TensorArgument& item : tensors_) {
    if (item.original.device() == *common) continue;
    const bool cpu = item.original.is_cpu();
    if (cpu && item.original.dim() == 0 && !item.written) continue;
    if (cpu && facts_.takes_cpu_indices) continue;
    const std::string method = "wrapper_VGPU_" + facts_.name.substr(facts_.name.find("::") + 2);
    const std::string argument = "argument " + std::to_string(item.argument);
    c10::impl::common_device_check_failure(*common, item.original, method.c_str(),
                                           argument.c_str());
  }
}

const at::Tensor& BoxedCall::tensor(std::size_t argument) const {
  static const at::Tensor undefined;
  for (const TensorArgument& item : tensors_) {
    if (item.argument == argument) return item.original;
  }
  return undefined;
}

const c10::IValue& BoxedCall::argument(std::size_t index) const { return arguments_[index]; }

bool BoxedCall::all_have_values() const {
  return std::all_of(tensors_.begin(), tensors_.end(), [](const TensorArgument& item) {
    return !item.block || item.block->has_values;
  });
}

bool BoxedCall::all_values_defined() const {
  return std::all_of(tensors_.begin(), tensors_.end(), [](const TensorArgument& item) {
    return !item.block || item.block->defined_values;
  });
}

at::Tensor BoxedCall::alias_of(TensorArgument& item, Twin twin) {
  if (!item.block) {
    item.alias = twin == Twin::meta ? meta_scalar(item.original) : item.original;
  } else if (twin == Twin::cpu) {
    item.alias = tensor_over(item.block->cpu_twin, c10::DispatchKey::CPU, item.original);
  } else {
    item.alias = tensor_over(item.block->meta_twin, c10::DispatchKey::Meta, item.original);
  }
  return item.alias;
}

c10::IValue BoxedCall::substituted(const c10::IValue& value, std::size_t& next, Twin twin) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? c10::IValue(alias_of(tensors_[next++], twin)) : value;
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(tensor.defined() ? alias_of(tensors_[next++], twin) : tensor);
    }
    return list;
  }
  c10::List<std::optional<at::Tensor>> list;
  for (const c10::IValue& item : value.toListRef()) {
    if (item.isTensor() && item.toTensor().defined()) {
      list.push_back(alias_of(tensors_[next++], twin));
    } else {
      list.push_back(item.isTensor() ? std::optional(item.toTensor()) : std::nullopt);
    }
  }
  return list;
}

void BoxedCall::substitute(Twin twin) {
  twin_ = twin;
  const std::size_t base = stack_->size() - facts_.arguments.size();
  std::size_t next = 0;
  for (std::size_t i = 0; i < facts_.arguments.size(); ++i) {
    c10::IValue& slot = (*stack_)[base + i];
    if (slot.isNone()) continue;
    if (facts_.arguments[i] == ArgumentKind::device) {
      slot = c10::Device(twin == Twin::cpu ? at::kCPU : at::kMeta);
    } else if (facts_.arguments[i] != ArgumentKind::other) {
      slot = substituted(slot, next, twin);
    }
  }
}

at::Tensor BoxedCall::new_output(const at::Tensor& output) {
  at::Tensor result;
  if (twin_ == Twin::meta) {
    result = vgpu_empty(device_, output.sizes(), output.strides(), output.scalar_type());
  } else {
    c10::StorageImpl* memory = output.storage().unsafeGetStorageImpl();
    auto known = std::find_if(adopted_.begin(), adopted_.end(),
                              [&](const auto& item) { return item.first == memory; });
    if (known == adopted_.end()) {
      adopted_.emplace_back(memory, adopt_cpu_storage(output.storage(), device_));
      known = adopted_.end() - 1;
    }
    result = vgpu_tensor(known->second, output.scalar_type(), output.sizes(), output.strides(),
                         output.storage_offset());
  }
  new_outputs_.push_back(result);
  return result;
}

at::Tensor BoxedCall::to_vgpu_output(const at::Tensor& output) {
  if (!output.defined() || is_vgpu(output)) return output;
  for (const TensorArgument& item : tensors_) {
    if (output.is_same(item.alias)) return item.original;
  }
  const c10::StorageImpl* memory = output.storage().unsafeGetStorageImpl();
  for (const TensorArgument& item : tensors_) {
    if (!item.block) continue;
    const c10::Storage& twin = twin_ == Twin::cpu ? item.block->cpu_twin : item.block->meta_twin;
    if (twin.unsafeGetStorageImpl() != memory) continue;
    return vgpu_tensor(item.original.storage(), output.scalar_type(), output.sizes(),
                       output.strides(), output.storage_offset());
  }
  return new_output(output);
}

void BoxedCall::map_outputs() {
  for (TensorArgument& item : tensors_) {
    if (!item.written || !item.block || same_geometry(item.original, item.alias)) continue;
    item.original.unsafeGetTensorImpl()->set_sizes_and_strides(
        item.alias.sizes(), item.alias.strides(), item.alias.storage_offset());
    follow_resized_twin(*item.original.storage().unsafeGetStorageImpl());
    item.block = block_of(item.original);
  }
  for (std::size_t i = stack_->size() - facts_.return_count; i < stack_->size(); ++i) {
    c10::IValue& value = (*stack_)[i];
    if (value.isTensor()) {
      value = to_vgpu_output(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector())
        list.push_back(to_vgpu_output(tensor));
      value = list;
    }
  }
}

void BoxedCall::set_outputs(std::vector<c10::IValue> outputs) {
  torch::jit::drop(*stack_, facts_.arguments.size());
  for (c10::IValue& output : outputs) {
    if (output.isTensor() && output.toTensor().defined()) {
      const at::Tensor& tensor = output.toTensor();
      const bool argument = std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& item) {
        return item.original.is_alias_of(tensor);
      });
      if (!argument) new_outputs_.push_back(tensor);
    }
    stack_->push_back(std::move(output));
  }
}

std::vector<Block*> BoxedCall::read_blocks() const {
  std::vector<Block*> blocks;
  for (const TensorArgument& item : tensors_) {
    if (item.block) blocks.push_back(item.block);
  }
  return blocks;
}

std::vector<Block*> BoxedCall::written_blocks() const {
  std::vector<Block*> blocks;
  for (const TensorArgument& item : tensors_) {
    if (item.block && item.written) blocks.push_back(item.block);
  }
  for (const at::Tensor& output : new_outputs_) blocks.push_back(block_of(output));
  return blocks;
}

}  // namespace bench::training
