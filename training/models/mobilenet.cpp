// MobileNetV2 of Sandler et al. (arXiv 1801.04381) at width 1, as torchvision builds it: inverted
// residual blocks of depthwise convolutions, many small parameters and little arithmetic.
#include "training/models/families.hpp"
#include "training/models/layers.hpp"

namespace bench::training {
namespace {

constexpr double kMobileNetDropout = 0.2;
constexpr double kMobileNetClassifierDeviation = 0.01;
constexpr std::int64_t kMobileNetFirst = 32;
constexpr std::int64_t kMobileNetLast = 1280;

// torchvision's Conv2dNormActivation.
Network::Build conv_norm_relu6(Conv2dOptions options) {
  options.padding = (options.kernel - 1) / 2;
  return sequential({conv2d(options), batch_norm2d(options.out), relu6()});
}

struct InvertedResidual {
  std::int64_t in;
  std::int64_t out;
  std::int64_t stride;
  std::int64_t expansion;
};

Network::Build inverted_residual(const InvertedResidual& o) {
  return [o](Network& self) -> Network::Forward {
    const std::int64_t hidden = o.in * o.expansion;
    std::vector<Network::Build> layers;
    if (o.expansion != 1) layers.push_back(conv_norm_relu6({.in = o.in, .out = hidden}));
    layers.push_back(conv_norm_relu6(
        {.in = hidden, .out = hidden, .kernel = 3, .stride = o.stride, .groups = hidden}));
    layers.push_back(conv2d({.in = hidden, .out = o.out}));
    layers.push_back(batch_norm2d(o.out));
    const Part block = self.add("conv", sequential(std::move(layers)));
    const bool residual = o.stride == 1 && o.in == o.out;
    return [=](const Network&, const torch::Tensor& x) {
      const torch::Tensor y = block->forward(x);
      return residual ? x + y : y;
    };
  };
}

Network::Build mobilenet_features() {
  struct Stage {
    std::int64_t expansion, channels, blocks, stride;
  };
  std::vector<Network::Build> layers{
      conv_norm_relu6({.in = 3, .out = kMobileNetFirst, .kernel = 3, .stride = 2})};
  std::int64_t in = kMobileNetFirst;
  for (const Stage& stage : {Stage{1, 16, 1, 1},
                             {6, 24, 2, 2},
                             {6, 32, 3, 2},
                             {6, 64, 4, 2},
                             {6, 96, 3, 1},
                             {6, 160, 3, 2},
                             {6, 320, 1, 1}}) {
    for (std::int64_t i = 0; i < stage.blocks; ++i) {
      layers.push_back(
          inverted_residual({in, stage.channels, i == 0 ? stage.stride : 1, stage.expansion}));
      in = stage.channels;
    }
  }
  layers.push_back(conv_norm_relu6({.in = in, .out = kMobileNetLast}));
  return sequential(std::move(layers));
}

}  // namespace

Network::Build mobilenet_v2(std::int64_t classes) {
  return [classes](Network& self) -> Network::Forward {
    const Part features = self.add("features", mobilenet_features());
    const Part classifier = self.add(
        "classifier", sequential({dropout(kMobileNetDropout),
                                  linear({kMobileNetLast, classes,
                                          normal(kMobileNetClassifierDeviation), constant(0)})}));
    return [=](const Network&, const torch::Tensor& x) {
      const torch::Tensor pooled = torch::adaptive_avg_pool2d(features->forward(x), {1, 1});
      return classifier->forward(torch::flatten(pooled, 1));
    };
  };
}

}  // namespace bench::training
