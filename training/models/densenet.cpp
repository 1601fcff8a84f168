// DenseNet of Huang et al. (arXiv 1608.06993) as torchvision builds it: every layer reads the
// outputs of all layers before it, so activations dominate memory and small operations the time.
#include "training/models/families.hpp"
#include "training/models/layers.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kGrowthRate = 32;
constexpr std::int64_t kBottleneckWidth = 4;
constexpr std::int64_t kDenseStem = 64;
constexpr auto kDenseFan = Conv2dOptions::Fan::in;

Network::Build dense_layer(std::int64_t in) {
  return [in](Network& self) -> Network::Forward {
    const std::int64_t inner = kBottleneckWidth * kGrowthRate;
    Chain layer(self);
    layer.then("norm1", batch_norm2d(in))
        .then("relu1", relu())
        .then("conv1", conv2d({.in = in, .out = inner, .fan = kDenseFan}))
        .then("norm2", batch_norm2d(inner))
        .then("relu2", relu())
        .then(
            "conv2",
            conv2d({.in = inner, .out = kGrowthRate, .kernel = 3, .padding = 1, .fan = kDenseFan}));
    return layer.forward();
  };
}

Network::Build dense_block(std::int64_t layers, std::int64_t in) {
  return [=](Network& self) -> Network::Forward {
    std::vector<Part> parts;
    for (std::int64_t i = 0; i < layers; ++i) {
      parts.push_back(
          self.add("denselayer" + std::to_string(i + 1), dense_layer(in + i * kGrowthRate)));
    }
    return [parts](const Network&, const torch::Tensor& x) {
      std::vector<torch::Tensor> features{x};
      for (const Part& part : parts) features.push_back(part->forward(torch::cat(features, 1)));
      return torch::cat(features, 1);
    };
  };
}

Network::Build transition(std::int64_t in) {
  return [in](Network& self) -> Network::Forward {
    Chain chain(self);
    chain.then("norm", batch_norm2d(in))
        .then("relu", relu())
        .then("conv", conv2d({.in = in, .out = in / 2, .fan = kDenseFan}))
        .then("pool", avg_pool2d({.kernel = 2, .stride = 2}));
    return chain.forward();
  };
}

Network::Build dense_features(const std::vector<std::int64_t>& blocks) {
  return [blocks](Network& self) -> Network::Forward {
    Chain chain(self);
    chain
        .then("conv0", conv2d({.in = 3,
                               .out = kDenseStem,
                               .kernel = 7,
                               .stride = 2,
                               .padding = 3,
                               .fan = kDenseFan}))
        .then("norm0", batch_norm2d(kDenseStem))
        .then("relu0", relu())
        .then("pool0", max_pool2d({.kernel = 3, .stride = 2, .padding = 1}));
    std::int64_t channels = kDenseStem;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i > 0) {
        chain.then("transition" + std::to_string(i), transition(channels));
        channels /= 2;
      }
      chain.then("denseblock" + std::to_string(i + 1), dense_block(blocks[i], channels));
      channels += blocks[i] * kGrowthRate;
    }
    chain.then("norm5", batch_norm2d(channels));
    return chain.forward();
  };
}

std::int64_t dense_channels(const std::vector<std::int64_t>& blocks) {
  std::int64_t channels = kDenseStem;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    channels = (i > 0 ? channels / 2 : channels) + blocks[i] * kGrowthRate;
  }
  return channels;
}

}  // namespace

Network::Build densenet(const std::vector<std::int64_t>& blocks, std::int64_t classes) {
  return [blocks, classes](Network& self) -> Network::Forward {
    const Part features = self.add("features", dense_features(blocks));
    const Part classifier = self.add(
        "classifier", linear({dense_channels(blocks), classes, std::nullopt, constant(0)}));
    return [=](const Network&, const torch::Tensor& x) {
      const torch::Tensor y = features->forward(x).relu_();
      return classifier->forward(torch::flatten(torch::adaptive_avg_pool2d(y, {1, 1}), 1));
    };
  };
}

}  // namespace bench::training
