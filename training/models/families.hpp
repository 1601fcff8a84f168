// The architectures of the zoo, one .cpp per family. Names and order of modules and parameters are
// torchvision's (those of the published checkpoints for gpt2 and bert), so that DDP's buckets are
// the ones users get.
#pragma once

#include "training/models/network.hpp"

#include <cstdint>
#include <vector>

namespace bench::training {

// mlp.cpp
Network::Build linear_regressor(std::int64_t inputs, std::int64_t outputs);

// resnet.cpp
struct ResNetOptions {
  bool bottleneck = false;            // blocks of three convolutions with 4x expansion
  std::int64_t blocks[4] = {};        // per stage
  std::int64_t groups = 1;            // ResNeXt
  std::int64_t width_per_group = 64;  // ResNeXt, wide ResNet
  std::int64_t base_width = 64;  // channels of the first stage; each further one has twice as many
};
Network::Build resnet(const ResNetOptions& options, std::int64_t classes);

// vgg.cpp: `hidden` is the width of the two large linear layers, 4096 in the paper.
Network::Build vgg16(std::int64_t hidden, std::int64_t classes);

// densenet.cpp: layers of each dense block.
Network::Build densenet(const std::vector<std::int64_t>& blocks, std::int64_t classes);

// mobilenet.cpp
Network::Build mobilenet_v2(std::int64_t classes);

// Of a transformer in its base size; vocabulary and positions are its own.
struct TransformerOptions {
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;
  std::int64_t width = 768;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
};

// gpt2.cpp
Network::Build gpt2(const TransformerOptions& options);

// bert.cpp
Network::Build bert(const TransformerOptions& options);

}  // namespace bench::training
