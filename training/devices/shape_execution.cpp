#include "training/devices/shape_execution.hpp"

#include "training/devices/operator_facts.hpp"
#include "training/devices/vgpu.hpp"

#include <ATen/ATen.h>

#include <limits>
#include <map>
#include <mutex>
#include <sstream>

namespace bench::training {
namespace {

// An operator without a rule runs once on zeros of its real sizes when these take no more memory.
constexpr std::uint64_t kProbeBytes = 64ULL << 20;

// A small tensor whose values nobody computed: NaN where the type has one.
void make_undefined(const at::Tensor& tensor) {
  Block* block = block_of(tensor);
  if (!block) return;
  block->defined_values = false;
  if (!block->has_values || !at::isFloatingType(tensor.scalar_type())) return;
  host_alias(tensor).fill_(std::numeric_limits<double>::quiet_NaN());
}

void run_rule(BoxedCall& call) {
  call.set_outputs(call.facts().shape(call));
  mark_values_undefined(call);
}

// In-place and out= forms return the arguments they write.
bool returns_written_arguments(const BoxedCall& call) {
  if (!call.facts().writes_arguments) return false;
  if (call.facts().name.back() == '_') return true;
  std::size_t written = 0;
  for (const TensorArgument& item : call.tensors()) {
    if (item.written && item.original.numel() > 0) ++written;
  }
  return written > 0 && written == call.facts().return_count;
}

void return_written_arguments(BoxedCall& call) {
  std::vector<c10::IValue> outputs;
  for (const TensorArgument& item : call.tensors()) {
    if (item.written && outputs.size() < call.facts().return_count) {
      outputs.emplace_back(item.original);
    }
  }
  call.set_outputs(std::move(outputs));
  mark_values_undefined(call);
}

void run_meta(const c10::OperatorHandle& op, BoxedCall& call, torch::jit::Stack* stack) {
  call.substitute(Twin::meta);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
  call.map_outputs();
  mark_values_undefined(call);
}

// Sizes, strides and type of an output, as the probe found them.
struct OutputPlan {
  bool defined = false;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  at::ScalarType type = at::kFloat;
  int argument = -1;  // the output is this argument
};

std::string probe_key(const BoxedCall& call) {
  std::ostringstream key;
  key << call.facts().name << '.' << call.facts().overload;
  for (std::size_t i = 0; i < call.facts().arguments.size(); ++i) {
    if (call.facts().arguments[i] == ArgumentKind::other) key << '|' << call.argument(i);
  }
  for (const TensorArgument& item : call.tensors()) {
    key << '|' << item.argument << item.original.sizes() << item.original.strides()
        << item.original.scalar_type();
  }
  return key.str();
}

[[noreturn]] void no_rule(const BoxedCall& call, const std::string& why) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "vgpu: shape execution has no rule for ", call.facts().name,
                              call.facts().overload.empty() ? "" : ".", call.facts().overload,
                              " and ", why,
                              ". Run this case with --execute numeric, or add the operator to "
                              "training/devices/shape_rules.cpp.");
}

std::uint64_t bytes_of(const BoxedCall& call) {
  std::uint64_t bytes = 0;
  for (const TensorArgument& item : call.tensors()) bytes += item.original.nbytes();
  return bytes;
}

at::Tensor zeros_like_on_cpu(const at::Tensor& tensor) {
  at::Tensor result = at::empty_strided(tensor.sizes(), tensor.strides(),
                                        tensor.options().device(at::kCPU).requires_grad(false));
  return result.zero_();
}

// Runs the CPU kernel on zeros and notes what comes out.
std::vector<OutputPlan> probe(const c10::OperatorHandle& op, const BoxedCall& call) {
  if (bytes_of(call) > kProbeBytes) no_rule(call, "its tensors are too large to run it once");
  torch::jit::Stack stack;
  std::vector<std::pair<at::Tensor, int>> inputs;
  for (std::size_t i = 0; i < call.facts().arguments.size(); ++i) {
    const c10::IValue& value = call.argument(i);
    if (call.facts().arguments[i] == ArgumentKind::device) {
      stack.emplace_back(c10::Device(at::kCPU));
    } else if (value.isTensor() && value.toTensor().defined()) {
      inputs.emplace_back(zeros_like_on_cpu(value.toTensor()), static_cast<int>(i));
      stack.emplace_back(inputs.back().first);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector())
        list.push_back(zeros_like_on_cpu(tensor));
      stack.emplace_back(list);
    } else {
      stack.push_back(value);
    }
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  std::vector<OutputPlan> plans;
  for (const c10::IValue& value : stack) {
    if (!value.isTensor()) no_rule(call, "it returns more than tensors");
    OutputPlan plan;
    const at::Tensor& tensor = value.toTensor();
    plan.defined = tensor.defined();
    if (plan.defined) {
      plan.sizes = tensor.sizes().vec();
      plan.strides = tensor.strides().vec();
      plan.type = tensor.scalar_type();
    }
    for (const auto& [input, argument] : inputs) {
      if (!tensor.is_same(input) && tensor.defined() && tensor.is_alias_of(input)) {
        no_rule(call, "it returns a view");
      }
      if (tensor.is_same(input)) plan.argument = argument;
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

void run_probe(const c10::OperatorHandle& op, BoxedCall& call) {
  static std::mutex mutex;
  static auto* known = new std::map<std::string, std::vector<OutputPlan>>;
  const std::string key = probe_key(call);
  std::vector<OutputPlan> plans;
  {
    std::scoped_lock lock(mutex);
    if (const auto found = known->find(key); found != known->end()) plans = found->second;
  }
  if (plans.empty()) {
    plans = probe(op, call);
    std::scoped_lock lock(mutex);
    (*known)[key] = plans;
  }
  std::vector<c10::IValue> outputs;
  for (const OutputPlan& plan : plans) {
    if (plan.argument >= 0) {
      outputs.emplace_back(call.tensor(plan.argument));
    } else if (plan.defined) {
      outputs.emplace_back(vgpu_empty(call.device(), plan.sizes, plan.strides, plan.type));
    } else {
      outputs.emplace_back(at::Tensor());
    }
  }
  call.set_outputs(std::move(outputs));
  mark_values_undefined(call);
}

}  // namespace

void mark_values_undefined(BoxedCall& call) {
  for (const TensorArgument& item : call.tensors()) {
    if (item.written) make_undefined(item.original);
  }
  for (const at::Tensor& output : call.new_outputs()) make_undefined(output);
}

void run_shape(const c10::OperatorHandle& op, BoxedCall& call, torch::jit::Stack* stack) {
  if (!call.facts().has_meta_kernel && returns_written_arguments(call)) {
    return return_written_arguments(call);
  }
  if (call.facts().shape && !call.facts().writes_arguments) return run_rule(call);
  if (call.facts().has_meta_kernel) return run_meta(op, call, stack);
  run_probe(op, call);
}

}  // namespace bench::training
