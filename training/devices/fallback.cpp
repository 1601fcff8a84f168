// The boxed fallback: every operator without a kernel of its own comes here. Numeric execution runs
// the CPU's kernel on aliases over the same memory; shape execution derives the outputs' sizes.
#include "training/devices/boxed_call.hpp"
#include "training/devices/operator_facts.hpp"
#include "training/devices/recorder_log.hpp"
#include "training/devices/shape_execution.hpp"
#include "training/devices/vgpu.hpp"
#include "training/devices/vgpu_device.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>

namespace bench::training {
namespace {

// "[32,512]x[512,10]": sizes of the tensors that are read, at most four of them.
std::string shape_signature(const BoxedCall& call) {
  constexpr int kShown = 4;
  std::string text;
  int shown = 0;
  for (const TensorArgument& item : call.tensors()) {
    if (item.written && call.facts().overload.find("out") != std::string::npos) continue;
    if (++shown > kShown) return text + "...";
    if (shown > 1) text += 'x';
    text += '[';
    for (std::int64_t d = 0; d < item.original.dim(); ++d) {
      if (d > 0) text += ',';
      text += std::to_string(item.original.size(d));
    }
    text += ']';
  }
  return text;
}

at::ScalarType working_type(const BoxedCall& call) {
  for (const TensorArgument& item : call.tensors()) {
    if (item.block && at::isFloatingType(item.original.scalar_type())) {
      return item.original.scalar_type();
    }
  }
  if (!call.new_outputs().empty()) return call.new_outputs()[0].scalar_type();
  return call.tensors().empty() ? at::kFloat : call.tensors()[0].original.scalar_type();
}

void record_operator(const BoxedCall& call, const torch::jit::Stack& stack) {
  const std::vector<Block*> writes = call.written_blocks();
  if (writes.empty()) return;  // a view: no kernel runs
  const std::vector<Block*> reads = call.read_blocks();
  const auto outputs = torch::jit::last(stack, call.facts().return_count);
  const OpCost cost = operator_cost(call, outputs);
  LoggedOperation logged;
  logged.name = call.facts().name;
  logged.shape = shape_signature(call);
  logged.op.device = call.device();
  logged.op.dtype = record_dtype(working_type(call));
  logged.op.flops = cost.flops;
  logged.op.bytes_read = cost.bytes_read;
  logged.op.bytes_written = cost.bytes_written;
  logged.op.launches = cost.launches;
  log_operation(std::move(logged), reads, writes);
}

void run_numeric(const c10::OperatorHandle& op, BoxedCall& call, torch::jit::Stack* stack) {
  call.substitute(Twin::cpu);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  call.map_outputs();
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  BoxedCall call(facts_of(op), stack);
  if (!shape_execution()) {
    run_numeric(op, call, stack);
  } else if (call.all_have_values()) {
    const bool defined = call.all_values_defined();
    run_numeric(op, call, stack);
    if (!defined) mark_values_undefined(call);
  } else {
    run_shape(op, call, stack);
  }
  if (recording()) record_operator(call, *stack);
}

// Operators whose default kernel takes them apart, though a GPU runs them as one: they come here.
constexpr const char* kWhole[] = {
    "convolution",
    "convolution_backward",
    "convolution_overrideable",
    "convolution_backward_overrideable",
    "native_layer_norm",
    "_foreach_add.Scalar",
    "_foreach_add.List",
    "_foreach_add_.Scalar",
    "_foreach_add_.List",
    "_foreach_mul.Scalar",
    "_foreach_mul.List",
    "_foreach_mul_.Scalar",
    "_foreach_mul_.List",
    "_foreach_mul_.Tensor",
    "_foreach_div_.Scalar",
    "_foreach_div_.List",
    "_foreach_div_.ScalarList",
    "_foreach_sqrt",
    "_foreach_sqrt_",
    "_foreach_addcmul_.Scalar",
    "_foreach_addcdiv_.Scalar",
    "_foreach_addcdiv_.ScalarList",
    "_foreach_lerp_.Scalar",
    "_foreach_copy_",
    "_foreach_zero_",
    "_foreach_norm.Scalar",
};

}  // namespace

void register_fallback() {
  static torch::Library everything(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1,
                                   __FILE__, __LINE__);
  everything.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__,
                             __LINE__);
  for (const char* name : kWhole) {
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
  }
}

}  // namespace bench::training
