// What a parameter is filled with when a network is built: the distributions of torch.nn.init that
// torchvision's models use, and who decides whether to draw at all.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>

namespace bench::training {

struct Distribution {
  enum class Kind { constant, normal, uniform };
  Kind kind = Kind::constant;
  double value = 0;  // the constant, the standard deviation, or the bound of a symmetric interval
};

Distribution constant(double value);
Distribution normal(double standard_deviation);
// kaiming_normal_ for ReLU networks: standard deviation sqrt(2 / fan).
Distribution kaiming_normal(std::int64_t fan);
// What torch.nn.Linear and torch.nn.Conv2d draw by themselves: kaiming_uniform_(a=sqrt(5)) for the
// weight and the same bound, 1 / sqrt(fan_in), for the bias.
Distribution default_uniform(std::int64_t fan_in);

// While it lives, networks built on this thread draw from one seeded generator, or (without a seed)
// leave random parameters unfilled, which costs neither time nor memory: shape execution and
// replicas need only their sizes. With no scope alive, building draws from LibTorch's default
// generator, as torch::nn's own layers do; torch::nn::parallel::data_parallel clones modules that
// way at every step, and that cost is part of what a benchmark of it measures.
class InitScope {
 public:
  explicit InitScope(std::optional<std::uint64_t> seed);
  ~InitScope();
  InitScope(const InitScope&) = delete;
  InitScope& operator=(const InitScope&) = delete;

  // Fills `tensor` as the innermost scope of this thread demands.
  static void fill(torch::Tensor& tensor, const Distribution& distribution);

 private:
  std::optional<at::Generator> generator_;
  InitScope* outer_;
};

}  // namespace bench::training
