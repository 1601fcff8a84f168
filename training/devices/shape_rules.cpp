#include "training/devices/shape_rules.hpp"

#include "training/devices/boxed_call.hpp"
#include "training/devices/operator_facts.hpp"

#include <ATen/ATen.h>

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
Results first_argument(const BoxedCall& call) { return {call.tensor(0)}; }
Results nothing(const BoxedCall&) { return {}; }

// The out= argument, which is the last; it has been given its size by a structured operator.
Results out_or_like_first(const BoxedCall& call) {
  const std::size_t last = call.facts().arguments.size() - 1;
  if (call.facts().written[last]) return {call.tensor(last)};
  return like_first(call);
}

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

// native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
Results batch_norm(const BoxedCall& call) {
  const at::Tensor& input = call.tensor(0);
  at::Tensor output = like(call, input);
  const Sizes saved{call.argument(5).toBool() ? input.size(1) : 0};
  at::Tensor mean = contiguous(call, saved, input.scalar_type());
  at::Tensor inverse = contiguous(call, saved, input.scalar_type());
  return {output, mean, inverse};
}

// native_batch_norm_backward(grad_out, input, weight, ..., output_mask)
Results batch_norm_backward(const BoxedCall& call) {
  const at::Tensor& input = call.tensor(1);
  const c10::IValue& mask = call.argument(9);
  at::Tensor grad_input = like_or_undefined(call, input, wanted(mask, 0));
  at::Tensor grad_weight;
  at::Tensor grad_bias;
  if (wanted(mask, 1)) grad_weight = contiguous(call, {input.size(1)}, input.scalar_type());
  if (wanted(mask, 2)) grad_bias = contiguous(call, {input.size(1)}, input.scalar_type());
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
    {"aten::relu", &like_first},
    {"aten::relu_", &first_argument},
    {"aten::zero_", &first_argument},
    {"aten::fill_", &first_argument},
    {"aten::normal_", &first_argument},
    {"aten::uniform_", &first_argument},
    {"aten::bernoulli_", &first_argument},
    {"aten::hardtanh", &out_or_like_first},
    {"aten::hardtanh_", &first_argument},
    {"aten::hardtanh_backward", &like_second},
    {"aten::hardswish", &out_or_like_first},
    {"aten::hardswish_", &first_argument},
    {"aten::hardswish_backward", &like_second},
    {"aten::_foreach_add_", &nothing},
    {"aten::_foreach_mul_", &nothing},
    {"aten::_foreach_div_", &nothing},
    {"aten::_foreach_sqrt_", &nothing},
    {"aten::_foreach_addcmul_", &nothing},
    {"aten::_foreach_addcdiv_", &nothing},
    {"aten::_foreach_lerp_", &nothing},
    {"aten::_foreach_copy_", &nothing},
    {"aten::_foreach_zero_", &nothing},
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
