// Every shape rule against numeric execution on small sizes: sizes, strides and types of all
// outputs. Tensors are larger than what shape execution keeps real.
#include <torch/torch.h>

#include <gtest/gtest.h>

#include <functional>

#include "tests/torch/vgpu_networks.hpp"

namespace bench::training {
namespace {

using Tensors = std::vector<torch::Tensor>;
using Ints = std::vector<std::int64_t>;

torch::Tensor values(const Ints& sizes, torch::Dtype type = torch::kFloat) {
  return to_vgpu(torch::ones(sizes, type), 0);
}

template <class... T>
Tensors list(const std::tuple<T...>& outputs) {
  return std::apply([](const auto&... tensor) { return Tensors{tensor...}; }, outputs);
}

struct RuleCase {
  const char* name;
  std::function<Tensors()> run;
};

Tensors convolution_gradients(std::array<bool, 3> mask) {
  return list(torch::convolution_backward(values({2, 8, 12, 12}), values({2, 4, 12, 12}),
                                          values({8, 4, 3, 3}), Ints{8}, {1, 1}, {1, 1}, {1, 1},
                                          false, {0, 0}, 1, mask));
}

Tensors batch_norm(bool training) {
  return list(torch::native_batch_norm(values({4, 8, 9, 9}), values({8}), values({8}), values({8}),
                                       values({8}), training, 0.1, 1e-5));
}

Tensors batch_norm_gradients() {
  return list(torch::native_batch_norm_backward(values({4, 8, 9, 9}), values({4, 8, 9, 9}),
                                                values({8}), values({8}), values({8}), values({8}),
                                                values({8}), true, 1e-5, {true, true, false}));
}

Tensors layer_norm_gradients() {
  return list(torch::native_layer_norm_backward(values({4, 10, 64}), values({4, 10, 64}), {64},
                                                values({4, 10, 1}), values({4, 10, 1}),
                                                values({64}), values({64}), {true, true, true}));
}

Tensors group_norm_gradients() {
  return list(torch::native_group_norm_backward(values({4, 8, 9, 9}), values({4, 8, 9, 9}),
                                                values({4, 2}), values({4, 2}), values({8}), 4, 8,
                                                81, 2, {true, true, true}));
}

Tensors in_place(const std::function<void(torch::Tensor&)>& change) {
  torch::Tensor tensor = values({40, 40});
  change(tensor);
  return {tensor};
}

const std::vector<RuleCase>& cases() {
  static const std::vector<RuleCase> all = {
      {"convolution",
       [] {
         return Tensors{torch::conv2d(values({2, 4, 13, 12}), values({8, 4, 3, 3}), values({8}),
                                      {2, 1}, {1, 0}, {1, 2})};
       }},
      {"convolution_groups",
       [] {
         return Tensors{torch::conv2d(values({2, 8, 9, 9}), values({8, 1, 3, 3}), {}, 1, 1, 1, 8)};
       }},
      {"convolution_transposed",
       [] {
         return Tensors{
             torch::conv_transpose2d(values({2, 4, 12, 12}), values({4, 6, 3, 3}), {}, 2, 1, 1)};
       }},
      {"convolution_1d",
       [] {
         return Tensors{torch::conv1d(values({2, 4, 400}), values({8, 4, 5}), {}, 3)};
       }},
      {"convolution_backward",
       [] {
         return convolution_gradients({true, true, true});
       }},
      {"convolution_backward_masked",
       [] {
         return convolution_gradients({false, true, false});
       }},
      {"native_batch_norm", [] { return batch_norm(true); }},
      {"native_batch_norm_eval", [] { return batch_norm(false); }},
      {"native_batch_norm_backward", &batch_norm_gradients},
      {"native_layer_norm",
       [] {
         return list(
             torch::native_layer_norm(values({4, 10, 64}), {64}, values({64}), values({64}), 1e-5));
       }},
      {"native_layer_norm_backward", &layer_norm_gradients},
      {"native_group_norm",
       [] {
         return list(torch::native_group_norm(values({4, 8, 9, 9}), values({8}), values({8}), 4, 8,
                                              81, 2, 1e-5));
       }},
      {"native_group_norm_backward", &group_norm_gradients},
      {"_adaptive_avg_pool2d",
       [] {
         return Tensors{torch::adaptive_avg_pool2d(values({2, 8, 15, 14}), {7, 6})};
       }},
      {"_adaptive_avg_pool2d_backward",
       [] {
         return Tensors{
             torch::_adaptive_avg_pool2d_backward(values({2, 8, 7, 7}), values({2, 8, 14, 14}))};
       }},
      {"max_pool2d_with_indices",
       [] {
         return list(torch::max_pool2d_with_indices(values({2, 8, 15, 15}), 3, 2, 1));
       }},
      {"native_dropout",
       [] {
         return list(torch::native_dropout(values({40, 40}), 0.5, true));
       }},
      {"native_dropout_eval",
       [] {
         return list(torch::native_dropout(values({40, 40}), 0.5, false));
       }},
      {"native_dropout_backward",
       [] {
         return Tensors{
             torch::native_dropout_backward(values({40, 40}), values({40, 40}, torch::kBool), 2.0)};
       }},
      {"embedding",
       [] {
         return Tensors{torch::embedding(values({100, 32}), values({20, 30}, torch::kLong))};
       }},
      {"embedding_dense_backward",
       [] {
         return Tensors{torch::embedding_dense_backward(
             values({20, 30, 32}), values({20, 30}, torch::kLong), 100, -1, false)};
       }},
      {"index_select",
       [] {
         return Tensors{torch::index_select(values({40, 40}), 1, values({7}, torch::kLong))};
       }},
      {"relu",
       [] {
         return Tensors{torch::relu(values({40, 40}).t())};
       }},
      {"relu_expanded",
       [] {
         return Tensors{torch::relu(values({2000}).expand({3, 2000}))};
       }},
      {"relu_", [] { return in_place([](torch::Tensor& t) { t.relu_(); }); }},
      {"fill_", [] { return in_place([](torch::Tensor& t) { t.fill_(2); }); }},
      {"zero_", [] { return in_place([](torch::Tensor& t) { t.zero_(); }); }},
      {"normal_", [] { return in_place([](torch::Tensor& t) { t.normal_(); }); }},
      {"uniform_", [] { return in_place([](torch::Tensor& t) { t.uniform_(); }); }},
      {"bernoulli_", [] { return in_place([](torch::Tensor& t) { t.bernoulli_(0.5); }); }},
      {"hardtanh",
       [] {
         return Tensors{torch::hardtanh(values({40, 40}))};
       }},
      {"hardtanh_", [] { return in_place([](torch::Tensor& t) { torch::hardtanh_(t); }); }},
      {"hardtanh_backward",
       [] {
         return Tensors{torch::hardtanh_backward(values({40, 40}), values({40, 40}), 0, 6)};
       }},
      {"hardswish",
       [] {
         return Tensors{torch::hardswish(values({40, 40}))};
       }},
      {"hardswish_backward",
       [] {
         return Tensors{torch::hardswish_backward(values({40, 40}), values({40, 40}))};
       }},
      {"gelu",
       [] {
         return Tensors{torch::gelu(values({40, 40}))};
       }},
      {"where",
       [] {
         return Tensors{
             torch::where(values({40, 1}, torch::kBool), values({40, 40}), values({1, 40}))};
       }},
      {"mse_loss",
       [] {
         return Tensors{torch::mse_loss(values({40, 40}), values({40, 40}))};
       }},
      {"mse_loss_backward",
       [] {
         return Tensors{
             torch::mse_loss_backward(values({}), values({40, 40}), values({40, 40}), 1)};
       }},
      {"glu_backward",
       [] {
         return Tensors{torch::glu_backward(values({40, 20}), values({40, 40}), 1)};
       }},
      {"flip",
       [] {
         return Tensors{torch::flip(values({40, 40}), {0})};
       }},
      {"roll",
       [] {
         return Tensors{torch::roll(values({40, 40}), 3, 0)};
       }},
      {"dot", [] { return Tensors{torch::dot(values({2000}), values({2000}))}; }},
      {"max",
       [] {
         return Tensors{torch::max(values({40, 40})), torch::min(values({40, 40}))};
       }},
      {"cat",
       [] {
         return Tensors{torch::cat({values({20, 40}), values({30, 40})}, 0)};
       }},
      {"_foreach_add",
       [] {
         return torch::_foreach_add({values({40, 40}), values({2000})}, 1.0);
       }},
      {"_foreach_mul",
       [] {
         return torch::_foreach_mul({values({40, 40}), values({2000})}, 2.0);
       }},
      {"_foreach_sqrt",
       [] {
         return torch::_foreach_sqrt({values({40, 40}), values({2000})});
       }},
      {"_foreach_norm",
       [] {
         return torch::_foreach_norm({values({40, 40}), values({2000})});
       }},
      {"_foreach_mul_",
       [] {
         Tensors tensors{values({40, 40}), values({2000})};
         torch::_foreach_mul_(tensors, 0.9);
         return tensors;
       }},
      // No rule: these run once on zeros of the same sizes, or have a Meta kernel.
      {"grid_sampler",
       [] {
         return Tensors{
             torch::grid_sampler(values({1, 3, 20, 20}), values({1, 30, 30, 2}), 0, 0, false)};
       }},
      {"prod",
       [] {
         return Tensors{torch::prod(values({40, 40}))};
       }},
      {"log_softmax",
       [] {
         return Tensors{torch::log_softmax(values({40, 40}), 1)};
       }},
  };
  return all;
}

std::string describe(const Tensors& tensors) {
  std::ostringstream text;
  for (const torch::Tensor& tensor : tensors) {
    if (!tensor.defined()) {
      text << "undefined; ";
    } else {
      text << tensor.scalar_type() << tensor.sizes() << tensor.strides() << tensor.device() << "; ";
    }
  }
  return text.str();
}

TEST(VgpuShapeRules, GiveTheOutputsOfNumericExecution) {
  std::vector<std::string> numeric;
  std::vector<std::uint64_t> bytes;
  use_vgpu(Execute::numeric);
  for (const RuleCase& rule : cases()) {
    reset_peak(0);
    numeric.push_back(describe(rule.run()));
    bytes.push_back(peak_bytes(0));
  }
  use_vgpu(Execute::shape);
  for (std::size_t i = 0; i < cases().size(); ++i) {
    SCOPED_TRACE(cases()[i].name);
    reset_peak(0);
    EXPECT_EQ(describe(cases()[i].run()), numeric[i]);
    EXPECT_EQ(peak_bytes(0), bytes[i]);
  }
  use_vgpu(Execute::numeric);
}

TEST(VgpuShapeRules, NameAnOperatorThatHasNone) {
  use_vgpu(Execute::shape);
  {
    const torch::Tensor large = values({8, 3, 1024, 1024});  // beyond what is run once on zeros
    try {
      torch::reflection_pad2d(large, {1, 1, 1, 1});
      ADD_FAILURE() << "no error";
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      EXPECT_NE(text.find("no rule for aten::reflection_pad2d"), std::string::npos) << text;
      EXPECT_NE(text.find("--execute numeric"), std::string::npos) << text;
    }
  }
  use_vgpu(Execute::numeric);
}

}  // namespace
}  // namespace bench::training
