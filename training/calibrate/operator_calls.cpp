#include "training/calibrate/operator_calls.hpp"

#include <torch/torch.h>

#include <algorithm>

namespace bench::training {
namespace {

// A convolution of square images; its filters are square too.
struct Layer {
  std::int64_t channels, size, filters, kernel, stride, groups;
  bool essential;  // also measured when quick
};

// ResNets at 224 pixels from the first layer to the last, what VGG adds, ResNeXt's groups and
// MobileNet's depthwise layers.
constexpr Layer kLayers[] = {
    {3, 224, 64, 7, 2, 1, false},     {64, 56, 64, 1, 1, 1, true},
    {64, 56, 64, 3, 1, 1, true},      {64, 56, 256, 1, 1, 1, false},
    {256, 56, 64, 1, 1, 1, false},    {256, 56, 512, 1, 2, 1, false},
    {128, 56, 128, 3, 2, 1, false},   {128, 28, 128, 3, 1, 1, true},
    {128, 28, 512, 1, 1, 1, false},   {512, 28, 128, 1, 1, 1, true},
    {256, 28, 256, 3, 2, 1, false},   {256, 14, 256, 3, 1, 1, true},
    {256, 14, 1024, 1, 1, 1, false},  {1024, 14, 256, 1, 1, 1, true},
    {512, 14, 512, 3, 2, 1, false},   {512, 7, 512, 3, 1, 1, true},
    {512, 7, 2048, 1, 1, 1, false},   {2048, 7, 512, 1, 1, 1, true},
    {64, 224, 64, 3, 1, 1, false},    {128, 112, 128, 3, 1, 1, false},
    {512, 28, 512, 3, 1, 1, false},   {128, 56, 128, 3, 1, 32, true},
    {256, 28, 256, 3, 1, 32, false},  {512, 14, 512, 3, 1, 32, true},
    {1024, 7, 1024, 3, 1, 32, false}, {96, 112, 96, 3, 2, 96, false},
    {144, 56, 144, 3, 1, 144, true},  {384, 14, 384, 3, 1, 384, true},
    {960, 7, 960, 3, 1, 960, false},
};

struct Image {
  std::int64_t channels, size;
  bool essential;
};
constexpr Image kImages[] = {{64, 112, true}, {64, 56, false}, {256, 56, true},  {128, 28, false},
                             {512, 28, true}, {256, 14, true}, {1024, 14, true}, {2048, 7, true}};

constexpr double kBytesPerElement = 4;

std::string text(std::int64_t number) { return std::to_string(number); }

void add_convolutions(std::int64_t batch, const Layer& l, std::vector<OperatorCall>& calls) {
  const std::vector<std::int64_t> input{batch, l.channels, l.size, l.size};
  const std::vector<std::int64_t> weight{l.filters, l.channels / l.groups, l.kernel, l.kernel};
  const std::vector<std::int64_t> stride{l.stride, l.stride};
  const std::vector<std::int64_t> padding{l.kernel / 2, l.kernel / 2};
  const std::vector<std::int64_t> one{1, 1}, none{0, 0};
  const std::int64_t groups = l.groups;
  const auto forward = [=](const at::Tensor& x, const at::Tensor& w) {
    return at::convolution(x, w, {}, stride, padding, one, false, none, groups);
  };
  const std::string label = "convolution " + text(l.channels) + "x" + text(l.size) + " to " +
                            text(l.filters) + " by " + text(l.kernel) + ", batch " + text(batch);
  const double bytes =
      kBytesPerElement * static_cast<double>(batch * l.size * l.size * (l.channels + l.filters));
  calls.push_back({label, bytes, [=](const at::TensorOptions& options) -> Call {
                     const at::Tensor x = filled(input, options);
                     const at::Tensor w = filled(weight, options);
                     return [=] { (void)forward(x, w); };
                   }});
  calls.push_back({label + ", backward", 2 * bytes, [=](const at::TensorOptions& options) -> Call {
                     const at::Tensor x = filled(input, options);
                     const at::Tensor w = filled(weight, options);
                     const at::Tensor gradient = filled(forward(x, w).sizes(), options);
                     return [=] {
                       (void)at::convolution_backward(gradient, x, w, at::OptionalIntArrayRef(),
                                                      stride, padding, one, false, none, groups,
                                                      {true, true, false});
                     };
                   }});
}

// x * w as a Linear layer's forward pass and its two gradients have it.
void add_products(std::int64_t rows, std::int64_t inner, std::int64_t columns,
                  std::vector<OperatorCall>& calls) {
  const std::string label =
      "matrix product " + text(rows) + "x" + text(inner) + "x" + text(columns);
  const double bytes =
      kBytesPerElement * static_cast<double>(rows * inner + inner * columns + rows * columns);
  calls.push_back({label, bytes, [=](const at::TensorOptions& options) -> Call {
                     const at::Tensor x = filled({rows, inner}, options);
                     const at::Tensor w = filled({columns, inner}, options);
                     const at::Tensor bias = filled({columns}, options);
                     return [=] { (void)at::addmm(bias, x, w.t()); };
                   }});
  calls.push_back({label + ", gradient", bytes, [=](const at::TensorOptions& options) -> Call {
                     const at::Tensor x = filled({rows, inner}, options);
                     const at::Tensor gradient = filled({rows, columns}, options);
                     return [=] { (void)at::mm(gradient.t(), x); };
                   }});
}

void add_streaming(std::int64_t elements, std::vector<OperatorCall>& calls) {
  const double bytes = kBytesPerElement * static_cast<double>(elements);
  const auto add = [&](const char* name, double tensors, auto make) {
    calls.push_back({std::string(name) + " of " + text(elements), tensors * bytes,
                     [=](const at::TensorOptions& options) -> Call {
                       const at::Tensor x = filled({elements}, options);
                       const at::Tensor y = tensors > 2 ? filled({elements}, options) : x;
                       return make(x, y);
                     }});
  };
  add("relu_", 1, [](const at::Tensor& x, const at::Tensor&) -> Call {
    return [=] { (void)at::relu_(const_cast<at::Tensor&>(x)); };
  });
  add("add", 3, [](const at::Tensor& x, const at::Tensor& y) -> Call {
    return [=] { (void)at::add(x, y); };
  });
  add("mul", 2, [](const at::Tensor& x, const at::Tensor&) -> Call {
    return [=] { (void)at::mul(x, 0.5); };
  });
  add("threshold_backward", 3, [](const at::Tensor& x, const at::Tensor& y) -> Call {
    return [=] { (void)at::threshold_backward(x, y, 0); };
  });
}

Call batch_norm(const at::Tensor& x, std::int64_t channels, bool backward) {
  // Statistics stay in float32 under mixed precision.
  const at::TensorOptions wide = x.options().dtype(at::kFloat);
  const at::Tensor weight = filled({channels}, wide), bias = filled({channels}, wide);
  const at::Tensor mean = at::zeros({channels}, wide), variance = at::ones({channels}, wide);
  const auto forward = [=] {
    return at::batch_norm(x, weight, bias, mean, variance, /*training=*/true, 0.1, 1e-5,
                          /*cudnn_enabled=*/true);
  };
  if (!backward) return [=] { (void)forward(); };
  for (const at::Tensor& leaf : {x, weight, bias}) leaf.requires_grad_(true);
  at::AutoGradMode recording(true);
  const at::Tensor y = forward();
  const at::Tensor gradient = filled(x.sizes(), x.options());
  return [=] {
    (void)torch::autograd::grad({y}, {x, weight, bias}, {gradient}, /*retain_graph=*/true);
  };
}

Call max_pool(const at::Tensor& x, bool backward) {
  const std::vector<std::int64_t> kernel{3, 3}, stride{2, 2}, padding{1, 1}, dilation{1, 1};
  if (!backward) {
    return [=] { (void)at::max_pool2d_with_indices(x, kernel, stride, padding, dilation); };
  }
  const auto [y, indices] = at::max_pool2d_with_indices(x, kernel, stride, padding, dilation);
  const at::Tensor gradient = filled(y.sizes(), x.options());
  const at::Tensor where = indices;
  return [=] {
    (void)at::max_pool2d_with_indices_backward(gradient, x, kernel, stride, padding, dilation,
                                               false, where);
  };
}

void add_image_operators(std::int64_t batch, const Image& image, std::vector<OperatorCall>& calls) {
  const std::vector<std::int64_t> shape{batch, image.channels, image.size, image.size};
  const std::int64_t channels = image.channels;
  const double bytes =
      2 * kBytesPerElement * static_cast<double>(batch * image.channels * image.size * image.size);
  const auto add = [&](const char* name, auto make) {
    calls.push_back({std::string(name) + " of " + text(channels) + "x" + text(image.size) +
                         ", batch " + text(batch),
                     bytes, [=](const at::TensorOptions& options) -> Call {
                       return make(filled(shape, options));
                     }});
  };
  add("batch_norm", [=](const at::Tensor& x) { return batch_norm(x, channels, false); });
  add("batch_norm backward", [=](const at::Tensor& x) { return batch_norm(x, channels, true); });
  add("mean", [](const at::Tensor& x) -> Call {
    return [=] { (void)at::mean(x, at::IntArrayRef{2, 3}); };
  });
  if (image.size != kImages[0].size) return;
  add("max_pool", [](const at::Tensor& x) { return max_pool(x, false); });
  add("max_pool backward", [](const at::Tensor& x) { return max_pool(x, true); });
}

// What a transformer adds, on `tokens` rows.
void add_token_operators(std::int64_t tokens, std::vector<OperatorCall>& calls) {
  constexpr std::int64_t kWidth = 768;
  const double bytes = 3 * kBytesPerElement * static_cast<double>(tokens * 4 * kWidth);
  const auto add = [&](const char* name, std::int64_t width, auto make) {
    calls.push_back({std::string(name) + " of " + text(tokens) + "x" + text(width), bytes,
                     [=](const at::TensorOptions& options) -> Call {
                       return make(filled({tokens, width}, options));
                     }});
  };
  add("gelu", 4 * kWidth,
      [](const at::Tensor& x) -> Call { return [=] { (void)at::gelu(x, "tanh"); }; });
  add("gelu_backward", 4 * kWidth, [](const at::Tensor& x) -> Call {
    const at::Tensor gradient = filled(x.sizes(), x.options());
    return [=] { (void)at::gelu_backward(gradient, x, "tanh"); };
  });
  add("layer_norm", kWidth, [](const at::Tensor& x) -> Call {
    const at::Tensor weight = filled({kWidth}, x.options());
    return [=] { (void)at::native_layer_norm(x, {kWidth}, weight, weight, 1e-5); };
  });
  add("log_softmax", kWidth,
      [](const at::Tensor& x) -> Call { return [=] { (void)at::_log_softmax(x, 1, false); }; });
  add("sum", kWidth,
      [](const at::Tensor& x) -> Call { return [=] { (void)at::sum(x, at::IntArrayRef{0}); }; });
}

}  // namespace

at::Tensor filled(at::IntArrayRef shape, const at::TensorOptions& options) {
  if (options.device().is_privateuseone()) return at::empty(shape, options);
  return at::randn(shape, options);
}

CallRange call_range(at::Device device, bool quick) {
  if (device.is_cuda() && !quick) {
    return {{4, 16, 32, 64, 128},
            {64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192},
            12,
            28,
            true};
  }
  if (device.is_cuda()) return {{8, 64}, {128, 256, 512, 1024, 2048, 4096}, 12, 26, false};
  // A CPU takes a thousand times as long.
  if (!quick) return {{2, 8}, {64, 128, 256, 512, 1024, 1536}, 10, 25, true};
  return {{2}, {64, 128, 256, 512, 768}, 10, 22, false};
}

std::vector<OperatorCall> operator_calls(const CallRange& range) {
  std::vector<OperatorCall> calls;
  for (int power = range.stream_from; power <= range.stream_to; power += 2) {
    add_streaming(std::int64_t{1} << power, calls);
  }
  for (const std::int64_t edge : range.edges) add_products(edge, edge, edge, calls);
  for (const std::int64_t batch : range.batches) {
    // Classifiers' last layers, and a language model's two widths.
    add_products(batch, 2048, 1000, calls);
    add_products(batch, 4096, 4096, calls);
    if (range.every_layer) add_products(batch * 64, 768, 3072, calls);
    for (const Layer& layer : kLayers) {
      if (range.every_layer || layer.essential) add_convolutions(batch, layer, calls);
    }
    for (const Image& image : kImages) {
      if (range.every_layer || image.essential) add_image_operators(batch, image, calls);
    }
    if (range.every_layer) add_token_operators(batch * 64, calls);
  }
  return calls;
}

}  // namespace bench::training
