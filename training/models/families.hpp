// The architectures of the zoo, one .cpp per family. Names and order of modules and parameters are
// torchvision's, so that DDP's buckets are the ones a torchvision user gets.
#pragma once

#include "training/models/network.hpp"

#include <cstdint>

namespace bench::training {

// mlp.cpp
Network::Build linear_regressor(std::int64_t inputs, std::int64_t outputs);

// resnet.cpp
struct ResNetOptions {
  bool bottleneck = false;            // blocks of three convolutions with 4x expansion
  std::int64_t blocks[4] = {};        // per stage
  std::int64_t groups = 1;            // ResNeXt
  std::int64_t width_per_group = 64;  // ResNeXt, wide ResNet
};
Network::Build resnet(const ResNetOptions& options, std::int64_t classes);

}  // namespace bench::training
