// The layers of the zoo, with the parameter names, definition order and arithmetic of torch.nn's
// layers of the same name.
#pragma once

#include "training/models/network.hpp"

#include <cstdint>
#include <optional>

namespace bench::training {

struct Conv2dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  bool bias = false;
  // torchvision draws most convolutions by fan_out; fan_in is kaiming_normal_'s default.
  enum class Fan { in, out } fan = Fan::out;
};
Network::Build conv2d(const Conv2dOptions& options);

Network::Build batch_norm2d(std::int64_t channels);

struct LinearOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::optional<Distribution> weight;  // absent: torch.nn.Linear's own
  std::optional<Distribution> bias;    // absent: torch.nn.Linear's own
};
Network::Build linear(const LinearOptions& options);

inline constexpr double kLayerNormEpsilon = 1e-5;  // torch.nn's default
Network::Build layer_norm(std::int64_t width, double epsilon = kLayerNormEpsilon);
// Rows drawn from a normal distribution of this deviation.
Network::Build embedding(std::int64_t rows, std::int64_t width, double deviation);

// In place, as torchvision's models run them.
Network::Build relu();
Network::Build relu6();
Network::Build gelu();
Network::Build dropout(double probability);

struct PoolOptions {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};
Network::Build max_pool2d(const PoolOptions& options);
Network::Build avg_pool2d(const PoolOptions& options);
Network::Build adaptive_avg_pool2d(std::int64_t height, std::int64_t width);

}  // namespace bench::training
