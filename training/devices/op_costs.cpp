#include "training/devices/op_costs.hpp"

#include "training/devices/boxed_call.hpp"
#include "training/devices/operator_facts.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace bench::training {
namespace cost_rules {  // both rule tables name their rules after operators
namespace {

using Outputs = c10::ArrayRef<c10::IValue>;

// Elements in memory: dimensions that are only expanded count once.
std::uint64_t stored_elements(const at::Tensor& tensor) {
  std::uint64_t elements = 1;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.stride(d) != 0) elements *= static_cast<std::uint64_t>(tensor.size(d));
    if (tensor.size(d) == 0) return 0;
  }
  return elements;
}

std::uint64_t stored_bytes(const at::Tensor& tensor) {
  return stored_elements(tensor) * tensor.element_size();
}

template <class Visit>
void for_each_output(Outputs outputs, Visit visit) {
  for (const c10::IValue& value : outputs) {
    if (value.isTensor() && value.toTensor().defined()) visit(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
    }
  }
}

double output_elements(const BoxedCall& call, Outputs outputs) {
  double elements = 0;
  for_each_output(outputs,
                  [&](const at::Tensor& t) { elements += static_cast<double>(t.numel()); });
  if (outputs.empty()) {  // in-place operators on lists return nothing
    for (const TensorArgument& item : call.tensors()) {
      if (item.written) elements += static_cast<double>(item.original.numel());
    }
  }
  return elements;
}

double first_output_elements(const BoxedCall& call, Outputs outputs) {
  if (!outputs.empty() && outputs[0].isTensor() && outputs[0].toTensor().defined()) {
    return static_cast<double>(outputs[0].toTensor().numel());
  }
  return output_elements(call, outputs);
}

double elements_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.numel()) : 0.0;
}

// --- rules

template <int kPerElement>
void per_output_element(const BoxedCall& call, Outputs outputs, OpCost& cost) {
  cost.flops = kPerElement * first_output_elements(call, outputs);
}

template <int kPerElement>
void per_input_element(const BoxedCall& call, Outputs, OpCost& cost) {
  cost.flops =
      kPerElement * elements_of(call.tensors().empty() ? at::Tensor() : call.tensors()[0].original);
}

// Products: every output element is a dot product along the last dimension of the left factor.
template <int kLeft>
void product(const BoxedCall& call, Outputs outputs, OpCost& cost) {
  const at::Tensor& left = call.tensor(kLeft);
  cost.flops = 2.0 * first_output_elements(call, outputs) *
               static_cast<double>(left.dim() > 0 ? left.size(-1) : 1);
}

// Multiply-adds of a convolution, forward or for one gradient: each pairs an element of the side
// that is not the convolution's sum with a filter (weight elements / filters of that side).
double convolution_flops(const at::Tensor& input, const at::Tensor& output,
                         const at::Tensor& weight, bool transposed) {
  const double positions = elements_of(transposed ? input : output);
  return 2.0 * positions * elements_of(weight) / static_cast<double>(weight.size(0));
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, ...)
void convolution(const BoxedCall& call, Outputs outputs, OpCost& cost) {
  const at::Tensor output = outputs[0].toTensor();
  const bool transposed = call.argument(6).toBool();
  cost.flops = convolution_flops(call.tensor(0), output, call.tensor(1), transposed);
  if (call.tensor(2).defined()) cost.flops += elements_of(output);
}

// Outputs are the gradients of input, weight and bias; only the requested ones are defined.
void convolution_backward(const BoxedCall& call, Outputs outputs, OpCost& cost) {
  const at::Tensor& grad_output = call.tensor(0);
  const at::Tensor& input = call.tensor(1);
  const at::Tensor& weight = call.tensor(2);
  // convolution_backward has bias_sizes before stride; the overrideable form has not.
  const std::size_t transposed_at = call.facts().name == "aten::convolution_backward" ? 7 : 6;
  const double one =
      convolution_flops(input, grad_output, weight, call.argument(transposed_at).toBool());
  cost = {};
  cost.launches = 0;
  const auto defined = [&](std::size_t i) { return outputs[i].toTensor().defined(); };
  const auto add = [&](double flops, std::uint64_t read, std::size_t output) {
    cost.flops += flops;
    cost.bytes_read += read;
    cost.bytes_written += stored_bytes(outputs[output].toTensor());
    ++cost.launches;
  };
  if (defined(0)) add(one, stored_bytes(grad_output) + stored_bytes(weight), 0);
  if (defined(1)) add(one, stored_bytes(grad_output) + stored_bytes(input), 1);
  if (defined(2)) add(elements_of(grad_output), stored_bytes(grad_output), 2);
}

// Pooling windows: max_pool2d_with_indices(self, kernel_size, ...), avg_pool2d alike.
void window_pool(const BoxedCall& call, Outputs outputs, OpCost& cost) {
  double window = 1;
  const auto kernel = call.argument(1).toIntVector();
  for (std::int64_t extent : kernel) window *= static_cast<double>(extent);
  if (kernel.size() == 1) window *= window;
  cost.flops = window * first_output_elements(call, outputs);
}

void adaptive_pool(const BoxedCall& call, Outputs, OpCost& cost) {
  cost.flops = elements_of(call.tensor(0));
}

template <int kLaunches>
void no_arithmetic(const BoxedCall&, Outputs, OpCost& cost) {
  cost.flops = 0;
  cost.launches = kLaunches;
}

template <int kPerElement, int kLaunches>
void normalisation(const BoxedCall& call, Outputs, OpCost& cost) {
  cost.flops = kPerElement * elements_of(call.tensors()[0].original);
  cost.launches = kLaunches;
}

// Reads single rows of a large table, not all of it. The rows' numbers are argument kIndices.
template <std::size_t kIndices>
void table_rows(const BoxedCall& call, Outputs outputs, OpCost& cost) {
  const std::uint64_t rows = stored_bytes(outputs[0].toTensor());
  cost.flops = 0;
  cost.bytes_read = rows + stored_bytes(call.tensor(kIndices));
}

// Kernels of one _foreach_ call: chunks of 65,536 elements, at most 320 chunks and a number of
// tensors by list count in one launch (ATen/native/cuda/MultiTensorApply.cuh).
std::uint16_t foreach_launches(const BoxedCall& call, std::size_t lists) {
  constexpr std::int64_t kChunkElements = 65536;
  constexpr std::int64_t kMaxChunks = 320;
  constexpr std::int64_t kMaxTensors[] = {110, 64, 48, 36, 30};
  const std::int64_t max_tensors = kMaxTensors[std::min<std::size_t>(lists, 5) - 1];
  std::int64_t tensors = 0;
  std::int64_t chunks = 0;
  std::uint16_t launches = 0;
  for (const TensorArgument& item : call.tensors()) {
    if (item.argument != 0) continue;
    std::int64_t left = (item.original.numel() + kChunkElements - 1) / kChunkElements;
    ++tensors;
    while (left > 0) {
      const std::int64_t taken = std::min(left, kMaxChunks - chunks);
      left -= taken;
      chunks += taken;
      const bool full = chunks == kMaxChunks || (tensors == max_tensors && left == 0);
      if (!full) continue;
      ++launches;
      chunks = 0;
      tensors = left > 0 ? 1 : 0;
    }
  }
  if (chunks > 0) ++launches;
  return std::max<std::uint16_t>(launches, 1);
}

template <int kPerElement>
void foreach (const BoxedCall& call, Outputs outputs, OpCost & cost) {
  double elements = 0;
  std::size_t lists = outputs.empty() ? 0 : 1;
  for (ArgumentKind kind : call.facts().arguments) lists += kind == ArgumentKind::tensor_list;
  for (const TensorArgument& item : call.tensors()) {
    if (item.argument == 0) elements += elements_of(item.original);
  }
  cost.flops = kPerElement * elements;
  cost.launches = foreach_launches(call, std::max<std::size_t>(lists, 1));
}

struct NamedRule {
  std::string_view name;
  CostRule rule;
};

// Operations per element of composite formulas (softmax, normalisation, activation functions) count
// the arithmetic of their definition; transcendental functions count as one.
constexpr NamedRule kRules[] = {
    {"aten::mm", &product<0>},
    {"aten::bmm", &product<0>},
    {"aten::mv", &product<0>},
    {"aten::dot", &product<0>},
    {"aten::addmm", &product<1>},
    {"aten::addmv", &product<1>},
    {"aten::baddbmm", &product<1>},
    {"aten::convolution", &convolution},
    {"aten::convolution_overrideable", &convolution},
    {"aten::convolution_backward", &convolution_backward},
    {"aten::convolution_backward_overrideable", &convolution_backward},
    {"aten::max_pool2d_with_indices", &window_pool},
    {"aten::avg_pool2d", &window_pool},
    {"aten::max_pool2d_with_indices_backward", &per_input_element<1>},
    {"aten::avg_pool2d_backward", &per_output_element<1>},
    {"aten::_adaptive_avg_pool2d", &adaptive_pool},
    {"aten::_adaptive_avg_pool2d_backward", &per_output_element<1>},
    {"aten::native_batch_norm", &normalisation<7, 1>},
    {"aten::native_batch_norm_backward", &normalisation<11, 1>},
    {"aten::native_layer_norm", &normalisation<7, 1>},
    {"aten::native_layer_norm_backward", &normalisation<11, 2>},
    {"aten::native_group_norm", &normalisation<7, 2>},
    {"aten::native_group_norm_backward", &normalisation<11, 3>},
    {"aten::_softmax", &per_output_element<5>},
    {"aten::_log_softmax", &per_output_element<5>},
    {"aten::_softmax_backward_data", &per_output_element<4>},
    {"aten::_log_softmax_backward_data", &per_output_element<4>},
    {"aten::gelu", &per_output_element<8>},
    {"aten::gelu_backward", &per_output_element<14>},
    {"aten::silu", &per_output_element<4>},
    {"aten::silu_backward", &per_output_element<7>},
    {"aten::hardswish", &per_output_element<4>},
    {"aten::hardswish_backward", &per_output_element<5>},
    {"aten::sigmoid", &per_output_element<3>},
    {"aten::sigmoid_backward", &per_output_element<3>},
    {"aten::tanh", &per_output_element<1>},
    {"aten::addcmul", &per_output_element<3>},
    {"aten::addcmul_", &per_output_element<3>},
    {"aten::addcdiv", &per_output_element<3>},
    {"aten::addcdiv_", &per_output_element<3>},
    {"aten::lerp", &per_output_element<3>},
    {"aten::lerp_", &per_output_element<3>},
    {"aten::native_dropout", &per_output_element<2>},
    {"aten::native_dropout_backward", &per_output_element<2>},
    {"aten::sum", &per_input_element<1>},
    {"aten::mean", &per_input_element<1>},
    {"aten::var", &per_input_element<3>},
    {"aten::linalg_vector_norm", &per_input_element<2>},
    {"aten::mse_loss", &per_input_element<3>},
    {"aten::mse_loss_backward", &per_output_element<3>},
    {"aten::nll_loss_forward", &per_output_element<2>},
    {"aten::embedding", &table_rows<1>},
    {"aten::index_select", &table_rows<2>},
    {"aten::embedding_dense_backward", &no_arithmetic<4>},
    {"aten::copy_", &no_arithmetic<1>},
    {"aten::_copy_from", &no_arithmetic<1>},
    {"aten::fill_", &no_arithmetic<1>},
    {"aten::zero_", &no_arithmetic<1>},
    {"aten::cat", &no_arithmetic<1>},
    {"aten::where", &no_arithmetic<1>},
    {"aten::gather", &no_arithmetic<1>},
    {"aten::slice_backward", &no_arithmetic<2>},
    {"aten::_fused_sgd_", &foreach<4>},
    {"aten::_fused_adam_", &foreach<12>},
    {"aten::_fused_adamw_", &foreach<13>},
    {"aten::_foreach_addcmul_", &foreach<3>},
    {"aten::_foreach_addcdiv_", &foreach<3>},
    {"aten::_foreach_lerp_", &foreach<3>},
    {"aten::_foreach_copy_", &foreach<0>},
    {"aten::_foreach_zero_", &foreach<0>},
    {"aten::_foreach_norm", &foreach<2>},
};

bool reads_its_output(const OperatorFacts& facts) {
  // In-place operators read what they update; out= arguments and these are overwritten.
  static constexpr std::string_view kOverwrite[] = {
      "aten::fill_",    "aten::zero_",      "aten::copy_",         "aten::normal_",
      "aten::uniform_", "aten::bernoulli_", "aten::_foreach_zero_"};
  if (facts.name.back() != '_') return false;
  return std::find(std::begin(kOverwrite), std::end(kOverwrite), facts.name) ==
         std::end(kOverwrite);
}

}  // namespace
}  // namespace cost_rules

CostRule find_cost_rule(const std::string& name) {
  static const auto* rules = [] {
    auto* map = new std::unordered_map<std::string_view, CostRule>;
    for (const cost_rules::NamedRule& rule : cost_rules::kRules) map->emplace(rule.name, rule.rule);
    return map;
  }();
  const auto found = rules->find(name);
  if (found != rules->end()) return found->second;
  return name.starts_with("aten::_foreach_") ? &cost_rules::foreach<1>
                                             : &cost_rules::per_output_element<1>;
}

OpCost operator_cost(const BoxedCall& call, c10::ArrayRef<c10::IValue> outputs) {
  OpCost cost;
  const bool reads_written = cost_rules::reads_its_output(call.facts());
  for (const TensorArgument& item : call.tensors()) {
    const std::uint64_t bytes = cost_rules::stored_bytes(item.original);
    if (!item.written || reads_written) cost.bytes_read += bytes;
    if (item.written) cost.bytes_written += bytes;
  }
  for (const at::Tensor& output : call.new_outputs())
    cost.bytes_written += cost_rules::stored_bytes(output);
  call.facts().cost(call, outputs, cost);
  return cost;
}

}  // namespace bench::training
