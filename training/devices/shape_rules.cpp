#include "training/devices/shape_rules.hpp"

#include "training/devices/boxed_call.hpp"
#include "training/devices/operator_facts.hpp"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include <string_view>
#include <unordered_map>

namespace bench::training {
namespace shape_rules {  // both rule tables name their rules after operators
namespace {

using Results = std::vector<c10::IValue>;
using Sizes = std::vector<std::int64_t>;

at::Tensor contiguous(const BoxedCall& call, const Sizes& sizes, at::ScalarType type) {
  Sizes strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::max<std::int64_t>(sizes[d], 1);
  }
  return vgpu_empty(call.device(), sizes, strides, type);
}

// As empty_like: keeps the strides of a dense tensor.
at::Tensor like(const BoxedCall& call, const at::Tensor& tensor) {
  if (!tensor.is_non_overlapping_and_dense()) {
    return contiguous(call, tensor.sizes().vec(), tensor.scalar_type());
  }
  return vgpu_empty(call.device(), tensor.sizes(), tensor.strides(), tensor.scalar_type());
}

at::Tensor like_or_undefined(const BoxedCall& call, const at::Tensor& tensor, bool wanted) {
  return wanted ? like(call, tensor) : at::Tensor();
}

bool wanted(const c10::IValue& mask, std::size_t index) { return mask.toBoolList()[index]; }

Results like_first(const BoxedCall& call) { return {like(call, call.tensor(0))}; }

at::Tensor scalar(const BoxedCall& call, at::ScalarType type) { return contiguous(call, {}, type); }

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Results convolution(const BoxedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const at::Tensor& weight = call.tensor(1);
  const auto stride = call.argument(3).toIntVector();
  const auto padding = call.argument(4).toIntVector();
  const auto dilation = call.argument(5).toIntVector();
  const bool transposed = call.argument(6).toBool();
  const auto output_padding = call.argument(7).toIntVector();
  const auto at_dim = [](const std::vector<std::int64_t>& values, std::size_t d) {
    return values.size() == 1 ? values[0] : values[d];
  };
  Sizes sizes{input.size(0),
              transposed ? weight.size(1) * call.argument(8).toInt() : weight.size(0)};
  for (std::int64_t d = 2; d < input.dim(); ++d) {
    const std::size_t s = static_cast<std::size_t>(d) - 2;
    const std::int64_t kernel = at_dim(dilation, s) * (weight.size(d) - 1) + 1;
    sizes.push_back(
        transposed ? (input.size(d) - 1) * at_dim(stride, s) - 2 * at_dim(padding, s) + kernel +
                         at_dim(output_padding, s)
                   : (input.size(d) + 2 * at_dim(padding, s) - kernel) / at_dim(stride, s) + 1);
  }
  return {contiguous(call, sizes, input.scalar_type())};
}

// convolution_backward(grad_output, input, weight, bias_sizes?, ..., output_mask)
Results convolution_backward(const BoxedCall& call) {
  const at::Tensor& grad_output = call.tensor(0);
  const c10::IValue& mask = call.argument(call.facts().arguments.size() - 1);
  at::Tensor bias;
  if (wanted(mask, 2)) bias = contiguous(call, {grad_output.size(1)}, grad_output.scalar_type());
  at::Tensor input = like_or_undefined(call, call.tensor(1), wanted(mask, 0));
  at::Tensor weight = like_or_undefined(call, call.tensor(2), wanted(mask, 1));
  return {input, weight, bias};
}

// Statistics and affine parameters stay in float32 beside a 16-bit input.
at::ScalarType parameter_type(const at::Tensor& input, const at::Tensor& weight) {
  return weight.defined() ? weight.scalar_type() : input.scalar_type();
}

// native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
Results batch_norm(const BoxedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const at::ScalarType type = parameter_type(input, call.tensor(1));
  at::Tensor output = like(call, input);
  const Sizes saved{call.argument(5).toBool() ? input.size(1) : 0};
  at::Tensor mean = contiguous(call, saved, type);
  at::Tensor inverse = contiguous(call, saved, type);
  return {output, mean, inverse};
}

// native_batch_norm_backward(grad_out, input, weight, ..., output_mask)
Results batch_norm_backward(const BoxedCall& call) {
  const at::Tensor& input = call.tensor(1);
  const c10::IValue& mask = call.argument(9);
  const at::ScalarType type = parameter_type(input, call.tensor(2));
  at::Tensor grad_input = like_or_undefined(call, input, wanted(mask, 0));
  at::Tensor grad_weight;
  at::Tensor grad_bias;
  if (wanted(mask, 1)) grad_weight = contiguous(call, {input.size(1)}, type);
  if (wanted(mask, 2)) grad_bias = contiguous(call, {input.size(1)}, type);
  return {grad_input, grad_weight, grad_bias};
}

// native_layer_norm(input, normalized_shape, weight, bias, eps): statistics per normalised group
Results layer_norm(const BoxedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const std::size_t normalised = call.argument(1).toIntVector().size();
  Sizes statistics = input.sizes().vec();
  for (std::size_t d = statistics.size() - normalised; d < statistics.size(); ++d)
    statistics[d] = 1;
  at::Tensor output = contiguous(call, input.sizes().vec(), input.scalar_type());
  at::Tensor mean = contiguous(call, statistics, input.scalar_type());
  at::Tensor inverse = contiguous(call, statistics, input.scalar_type());
  return {output, mean, inverse};
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, mask)
Results layer_norm_backward(const BoxedCall& call) {
  const c10::IValue& mask = call.argument(7);
  at::Tensor grad_input = like_or_undefined(call, call.tensor(1), wanted(mask, 0));
  at::Tensor grad_weight = like_or_undefined(call, call.tensor(5), wanted(mask, 1));
  at::Tensor grad_bias = like_or_undefined(call, call.tensor(6), wanted(mask, 2));
  return {grad_input, grad_weight, grad_bias};
}

// _adaptive_avg_pool2d(self, output_size)
Results adaptive_avg_pool(const BoxedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const auto target = call.argument(1).toIntVector();
  Sizes sizes = input.sizes().vec();
  sizes[sizes.size() - 2] = target[0];
  sizes[sizes.size() - 1] = target[1];
  return {contiguous(call, sizes, input.scalar_type())};
}

// op(grad_output, self, ...): the gradient of self
Results like_second(const BoxedCall& call) { return {like(call, call.tensor(1))}; }

// native_dropout(input, p, train)
Results dropout(const BoxedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const c10::IValue& train = call.argument(2);
  at::Tensor output = like(call, input);
  const bool trains = train.isNone() || train.toBool();
  at::Tensor mask = trains && input.is_non_overlapping_and_dense()
                        ? vgpu_empty(call.device(), input.sizes(), input.strides(), at::kBool)
                        : contiguous(call, input.sizes().vec(), at::kBool);
  return {output, mask};
}

// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Results embedding_backward(const BoxedCall& call) {
  const at::Tensor& grad = call.tensor(0);
  return {contiguous(call, {call.argument(2).toInt(), grad.size(-1)}, grad.scalar_type())};
}

// index_select(self, dim, index)
Results index_select(const BoxedCall& call) {
  const at::Tensor& self = call.tensor(0);
  Sizes sizes = self.sizes().vec();
  if (!sizes.empty()) {
    const std::int64_t dim = call.argument(1).toInt();
    sizes[dim < 0 ? dim + self.dim() : dim] = call.tensor(2).numel();
  }
  return {contiguous(call, sizes, self.scalar_type())};
}

// where.self(condition, self, other): all three are broadcast
Results where(const BoxedCall& call) {
  const Sizes values = at::infer_size(call.tensor(1).sizes(), call.tensor(2).sizes());
  return {contiguous(call, at::infer_size(call.tensor(0).sizes(), values),
                     at::result_type(call.tensor(1), call.tensor(2)))};
}

// native_group_norm(input, weight, bias, N, C, HxW, group, eps): statistics per sample and group
Results group_norm(const BoxedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const Sizes statistics{call.argument(3).toInt(), call.argument(6).toInt()};
  at::Tensor output = like(call, input);
  at::Tensor mean = contiguous(call, statistics, input.scalar_type());
  at::Tensor inverse = contiguous(call, statistics, input.scalar_type());
  return {output, mean, inverse};
}

// native_group_norm_backward(grad_out, input, mean, rstd, weight?, N, C, HxW, group, output_mask)
Results group_norm_backward(const BoxedCall& call) {
  const at::Tensor& input = call.tensor(1);
  const c10::IValue& mask = call.argument(9);
  const Sizes channels{call.argument(6).toInt()};
  at::Tensor grad_input = like_or_undefined(call, input, wanted(mask, 0));
  at::Tensor grad_weight;
  at::Tensor grad_bias;
  if (wanted(mask, 1)) grad_weight = contiguous(call, channels, input.scalar_type());
  if (wanted(mask, 2)) grad_bias = contiguous(call, channels, input.scalar_type());
  return {grad_input, grad_weight, grad_bias};
}

Results one_value(const BoxedCall& call) { return {scalar(call, call.tensor(0).scalar_type())}; }

// _foreach operators that return a list: as the first list, or one value for each of its tensors
Results like_first_list(const BoxedCall& call) {
  c10::List<at::Tensor> list;
  for (const TensorArgument& item : call.tensors()) {
    if (item.argument == 0) list.push_back(like(call, item.original));
  }
  return {list};
}
Results values_of_first_list(const BoxedCall& call) {
  c10::List<at::Tensor> list;
  for (const TensorArgument& item : call.tensors()) {
    if (item.argument == 0) list.push_back(scalar(call, item.original.scalar_type()));
  }
  return {list};
}

struct NamedRule {
  std::string_view name;
  ShapeRule rule;
};

constexpr NamedRule kRules[] = {
    {"aten::convolution", &convolution},
    {"aten::convolution_overrideable", &convolution},
    {"aten::convolution_backward", &convolution_backward},
    {"aten::convolution_backward_overrideable", &convolution_backward},
    {"aten::native_batch_norm", &batch_norm},
    {"aten::native_batch_norm_backward", &batch_norm_backward},
    {"aten::native_layer_norm", &layer_norm},
    {"aten::native_layer_norm_backward", &layer_norm_backward},
    {"aten::_adaptive_avg_pool2d", &adaptive_avg_pool},
    {"aten::_adaptive_avg_pool2d_backward", &like_second},
    {"aten::native_dropout", &dropout},
    {"aten::embedding_dense_backward", &embedding_backward},
    {"aten::index_select", &index_select},
    {"aten::where", &where},
    {"aten::native_group_norm", &group_norm},
    {"aten::native_group_norm_backward", &group_norm_backward},
    {"aten::relu", &like_first},
    {"aten::flip", &like_first},
    {"aten::roll", &like_first},
    {"aten::native_dropout_backward", &like_first},
    {"aten::hardtanh", &like_first},
    {"aten::hardtanh_backward", &like_second},
    {"aten::hardswish", &like_first},
    {"aten::hardswish_backward", &like_second},
    {"aten::mse_loss_backward", &like_second},
    {"aten::mish_backward", &like_second},
    {"aten::glu_backward", &like_second},
    {"aten::_prelu_kernel", &like_first},
    {"aten::dot", &one_value},
    {"aten::max", &one_value},
    {"aten::min", &one_value},
    {"aten::_foreach_add", &like_first_list},
    {"aten::_foreach_mul", &like_first_list},
    {"aten::_foreach_sqrt", &like_first_list},
    {"aten::_foreach_norm", &values_of_first_list},
};

}  // namespace
}  // namespace shape_rules

ShapeRule find_shape_rule(const std::string& name) {
  static const auto* rules = [] {
    auto* map = new std::unordered_map<std::string_view, ShapeRule>;
    for (const shape_rules::NamedRule& rule : shape_rules::kRules)
      map->emplace(rule.name, rule.rule);
    return map;
  }();
  const auto found = rules->find(name);
  return found == rules->end() ? nullptr : found->second;
}

}  // namespace bench::training
