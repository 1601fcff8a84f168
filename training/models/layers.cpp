#include "training/models/layers.hpp"

namespace bench::training {
namespace {

// torch.nn's defaults.
constexpr double kBatchNormMomentum = 0.1;
constexpr double kBatchNormEpsilon = 1e-5;

// A layer without parameters: forward is all there is.
Network::Build stateless(Network::Forward forward) {
  return [forward = std::move(forward)](Network&) { return forward; };
}

}  // namespace

Network::Build conv2d(const Conv2dOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const std::int64_t area = o.kernel * o.kernel;
    const std::int64_t fan_in = o.in / o.groups * area;
    const std::int64_t fan = o.fan == Conv2dOptions::Fan::out ? o.out * area : fan_in;
    const torch::Tensor weight =
        self.parameter("weight", {o.out, o.in / o.groups, o.kernel, o.kernel}, kaiming_normal(fan));
    torch::Tensor bias;
    if (o.bias) bias = self.parameter("bias", {o.out}, constant(0));
    return [o, weight, bias](const Network&, const torch::Tensor& input) {
      return torch::conv2d(input, weight, bias, {o.stride, o.stride}, {o.padding, o.padding},
                           {1, 1}, o.groups);
    };
  };
}

Network::Build batch_norm2d(std::int64_t channels) {
  return [channels](Network& self) -> Network::Forward {
    const torch::Tensor weight = self.parameter("weight", {channels}, constant(1));
    const torch::Tensor bias = self.parameter("bias", {channels}, constant(0));
    const torch::Tensor mean = self.buffer("running_mean", torch::zeros({channels}));
    const torch::Tensor variance = self.buffer("running_var", torch::ones({channels}));
    const torch::Tensor batches =
        self.buffer("num_batches_tracked", torch::zeros({}, torch::kInt64));
    return [=](const Network& net, const torch::Tensor& input) {
      if (net.is_training()) batches.add_(1);
      return torch::batch_norm(input, weight, bias, mean, variance, net.is_training(),
                               kBatchNormMomentum, kBatchNormEpsilon,
                               at::globalContext().userEnabledCuDNN());
    };
  };
}

Network::Build linear(const LinearOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Distribution usual = default_uniform(o.in);
    const torch::Tensor weight = self.parameter("weight", {o.out, o.in}, o.weight.value_or(usual));
    const torch::Tensor bias = self.parameter("bias", {o.out}, o.bias.value_or(usual));
    return [weight, bias](const Network&, const torch::Tensor& input) {
      return torch::linear(input, weight, bias);
    };
  };
}

Network::Build layer_norm(std::int64_t width, double epsilon) {
  return [=](Network& self) -> Network::Forward {
    const torch::Tensor weight = self.parameter("weight", {width}, constant(1));
    const torch::Tensor bias = self.parameter("bias", {width}, constant(0));
    return [=](const Network&, const torch::Tensor& input) {
      return torch::layer_norm(input, {width}, weight, bias, epsilon);
    };
  };
}

Network::Build embedding(std::int64_t rows, std::int64_t width, double deviation) {
  return [=](Network& self) -> Network::Forward {
    const torch::Tensor weight = self.parameter("weight", {rows, width}, normal(deviation));
    return [weight](const Network&, const torch::Tensor& ids) {
      return torch::embedding(weight, ids);
    };
  };
}

Network::Build relu() {
  return stateless([](const Network&, const torch::Tensor& input) { return input.relu_(); });
}

Network::Build relu6() {
  return stateless([](const Network&, const torch::Tensor& input) {
    torch::Tensor value = input;
    return torch::hardtanh_(value, 0, 6);
  });
}

Network::Build gelu() {
  return stateless([](const Network&, const torch::Tensor& x) { return torch::gelu(x); });
}

Network::Build dropout(double probability) {
  return [probability](Network& self) -> Network::Forward {
    self.marked_as_dropout = true;
    return [probability](const Network& net, const torch::Tensor& input) {
      return torch::dropout(input, probability, net.is_training());
    };
  };
}

Network::Build max_pool2d(const PoolOptions& o) {
  return stateless([o](const Network&, const torch::Tensor& input) {
    return torch::max_pool2d(input, {o.kernel, o.kernel}, {o.stride, o.stride},
                             {o.padding, o.padding});
  });
}

Network::Build avg_pool2d(const PoolOptions& o) {
  return stateless([o](const Network&, const torch::Tensor& input) {
    return torch::avg_pool2d(input, {o.kernel, o.kernel}, {o.stride, o.stride},
                             {o.padding, o.padding});
  });
}

Network::Build adaptive_avg_pool2d(std::int64_t height, std::int64_t width) {
  return stateless([=](const Network&, const torch::Tensor& input) {
    return torch::adaptive_avg_pool2d(input, {height, width});
  });
}

}  // namespace bench::training
