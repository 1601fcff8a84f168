// ResNet of He et al. (arXiv 1512.03385) in torchvision's form: stride in the 3x3 convolution of a
// bottleneck ("v1.5"), batch normalisation after every convolution; with groups it is ResNeXt
// (arXiv 1611.05431), with a doubled inner width the wide ResNet (arXiv 1605.07146).
#include "training/models/families.hpp"
#include "training/models/layers.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kBottleneckExpansion = 4;
constexpr std::int64_t kBaseWidth = 64;  // that width_per_group is a multiple of

struct BlockOptions {
  std::int64_t in = 0;
  std::int64_t planes = 0;
  std::int64_t width = 0;  // of the bottleneck's 3x3 convolution
  std::int64_t out = 0;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  bool project() const { return stride != 1 || in != out; }
};

Network::Build downsample(const BlockOptions& o) {
  return sequential({conv2d({.in = o.in, .out = o.out, .stride = o.stride}), batch_norm2d(o.out)});
}

Network::Build basic_block(const BlockOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Part conv1 = self.add(
        "conv1",
        conv2d({.in = o.in, .out = o.planes, .kernel = 3, .stride = o.stride, .padding = 1}));
    const Part bn1 = self.add("bn1", batch_norm2d(o.planes));
    const Part activation = self.add("relu", relu());
    const Part conv2 =
        self.add("conv2", conv2d({.in = o.planes, .out = o.planes, .kernel = 3, .padding = 1}));
    const Part bn2 = self.add("bn2", batch_norm2d(o.planes));
    const Part shortcut = o.project() ? self.add("downsample", downsample(o)) : nullptr;
    return [=](const Network&, const torch::Tensor& x) {
      torch::Tensor y = activation->forward(bn1->forward(conv1->forward(x)));
      y = bn2->forward(conv2->forward(y));
      y += shortcut ? shortcut->forward(x) : x;
      return activation->forward(y);
    };
  };
}

Network::Build bottleneck_block(const BlockOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Part conv1 = self.add("conv1", conv2d({.in = o.in, .out = o.width}));
    const Part bn1 = self.add("bn1", batch_norm2d(o.width));
    const Part conv2 = self.add("conv2", conv2d({.in = o.width,
                                                 .out = o.width,
                                                 .kernel = 3,
                                                 .stride = o.stride,
                                                 .padding = 1,
                                                 .groups = o.groups}));
    const Part bn2 = self.add("bn2", batch_norm2d(o.width));
    const Part conv3 = self.add("conv3", conv2d({.in = o.width, .out = o.out}));
    const Part bn3 = self.add("bn3", batch_norm2d(o.out));
    const Part activation = self.add("relu", relu());
    const Part shortcut = o.project() ? self.add("downsample", downsample(o)) : nullptr;
    return [=](const Network&, const torch::Tensor& x) {
      torch::Tensor y = activation->forward(bn1->forward(conv1->forward(x)));
      y = activation->forward(bn2->forward(conv2->forward(y)));
      y = bn3->forward(conv3->forward(y));
      y += shortcut ? shortcut->forward(x) : x;
      return activation->forward(y);
    };
  };
}

// Stage `index` halves the resolution in its first block, except the first stage.
Network::Build stage(const ResNetOptions& o, int index, std::int64_t in) {
  const std::int64_t planes = o.base_width << index;
  BlockOptions block{.in = in, .planes = planes, .groups = o.groups};
  block.width = planes * o.width_per_group / kBaseWidth * o.groups;
  block.out = o.bottleneck ? planes * kBottleneckExpansion : planes;
  block.stride = index == 0 ? 1 : 2;
  std::vector<Network::Build> blocks;
  for (std::int64_t i = 0; i < o.blocks[index]; ++i) {
    blocks.push_back(o.bottleneck ? bottleneck_block(block) : basic_block(block));
    block.in = block.out;
    block.stride = 1;
  }
  return sequential(std::move(blocks));
}

}  // namespace

Network::Build resnet(const ResNetOptions& o, std::int64_t classes) {
  return [o, classes](Network& self) -> Network::Forward {
    Chain body(self);
    body.then("conv1",
              conv2d({.in = 3, .out = o.base_width, .kernel = 7, .stride = 2, .padding = 3}))
        .then("bn1", batch_norm2d(o.base_width))
        .then("relu", relu())
        .then("maxpool", max_pool2d({.kernel = 3, .stride = 2, .padding = 1}));
    std::int64_t channels = o.base_width;
    for (int i = 0; i < 4; ++i) {
      body.then("layer" + std::to_string(i + 1), stage(o, i, channels));
      channels = (o.base_width << i) * (o.bottleneck ? kBottleneckExpansion : 1);
    }
    body.then("avgpool", adaptive_avg_pool2d(1, 1));
    const Network::Forward features = body.forward();
    const Part classifier = self.add("fc", linear({.in = channels, .out = classes}));
    return [=](const Network& net, const torch::Tensor& x) {
      return classifier->forward(torch::flatten(features(net, x), 1));
    };
  };
}

}  // namespace bench::training
