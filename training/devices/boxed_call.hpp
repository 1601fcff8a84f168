// One call of an operator on virtual GPUs, as the dispatcher hands it to the fallback: finds the
// tensors among the boxed arguments, gives kernels of another backend aliases over the same
// storage, and turns what they return into vgpu tensors again.
#pragma once

#include "training/devices/vgpu_memory.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bench::training {

struct OperatorFacts;  // operator_facts.hpp

struct TensorArgument {
  at::Tensor original;
  at::Tensor alias;        // what the kernel is given; equal to `original` where it needs no alias
  Block* block = nullptr;  // null: a CPU tensor
  std::uint16_t argument = 0;
  bool written = false;
};

enum class Twin { cpu, meta };

inline constexpr c10::DispatchKeySet kVgpuKeys(c10::DispatchKey::PrivateUse1);

class BoxedCall {
 public:
  // Reads the arguments on top of `stack`; raises PyTorch's error where devices are mixed.
  BoxedCall(const OperatorFacts& facts, torch::jit::Stack* stack);

  const OperatorFacts& facts() const { return facts_; }
  int device() const { return device_; }
  const c10::SmallVector<TensorArgument, 8>& tensors() const { return tensors_; }
  // The `index`-th tensor among the arguments that is an argument of its own (not in a list).
  const at::Tensor& tensor(std::size_t argument) const;
  // Arguments as the caller gave them; kept only when `keep_arguments` was called.
  const c10::IValue& argument(std::size_t index) const;

  // Whether a CPU kernel may read every tensor (always, under numeric execution).
  bool all_have_values() const;
  bool all_values_defined() const;

  void substitute(Twin twin);
  // After the kernel: takes over sizes of resized arguments and re-labels the outputs on the stack.
  void map_outputs();
  // Replaces the arguments by outputs that a shape rule computed.
  void set_outputs(std::vector<c10::IValue> outputs);

  // Tensors among the outputs whose storage is new, and vgpu blocks read and written; in order.
  const std::vector<at::Tensor>& new_outputs() const { return new_outputs_; }
  std::vector<Block*> read_blocks() const;
  std::vector<Block*> written_blocks() const;

 private:
  void collect(const c10::IValue& value, std::uint16_t argument);
  void add(const at::Tensor& tensor, std::uint16_t argument);
  void check_devices();
  void choose_device();
  at::Tensor alias_of(TensorArgument& argument, Twin twin);
  c10::IValue substituted(const c10::IValue& value, std::size_t& next, Twin twin);
  at::Tensor to_vgpu_output(const at::Tensor& output);
  at::Tensor new_output(const at::Tensor& output);

  const OperatorFacts& facts_;
  torch::jit::Stack* stack_;
  Twin twin_ = Twin::cpu;
  int device_ = 0;
  c10::SmallVector<TensorArgument, 8> tensors_;
  c10::SmallVector<c10::IValue, 12> arguments_;
  std::vector<at::Tensor> new_outputs_;
  c10::SmallVector<std::pair<c10::StorageImpl*, c10::Storage>, 2> adopted_;
};

// Makes a vgpu tensor over `storage`.
at::Tensor vgpu_tensor(c10::Storage storage, at::ScalarType dtype, at::IntArrayRef sizes,
                       at::IntArrayRef strides, std::int64_t offset);
// A CPU tensor over the same memory; `tensor` itself where it is not on a virtual GPU. The memory
// must hold values.
at::Tensor host_alias(const at::Tensor& tensor);
// Allocates on a device without recording an operation.
at::Tensor vgpu_empty(int device, at::IntArrayRef sizes, at::IntArrayRef strides,
                      at::ScalarType dtype);

}  // namespace bench::training
