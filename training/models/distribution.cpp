#include "training/models/distribution.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

namespace bench::training {
namespace {

thread_local InitScope* innermost = nullptr;

}  // namespace

Distribution constant(double value) { return {Distribution::Kind::constant, value}; }

Distribution normal(double standard_deviation) {
  return {Distribution::Kind::normal, standard_deviation};
}

Distribution kaiming_normal(std::int64_t fan) {
  return normal(std::sqrt(2.0 / static_cast<double>(fan)));
}

Distribution default_uniform(std::int64_t fan_in) {
  return {Distribution::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(fan_in))};
}

InitScope::InitScope(std::optional<std::uint64_t> seed) : outer_(innermost) {
  if (seed) generator_ = at::make_generator<at::CPUGeneratorImpl>(*seed);
  innermost = this;
}

InitScope::~InitScope() { innermost = outer_; }

void InitScope::fill(torch::Tensor& tensor, const Distribution& distribution) {
  torch::NoGradGuard no_grad;
  if (distribution.kind == Distribution::Kind::constant) {
    tensor.fill_(distribution.value);
    return;
  }
  if (innermost != nullptr && !innermost->generator_) return;
  std::optional<at::Generator> generator;
  if (innermost != nullptr) generator = innermost->generator_;
  if (distribution.kind == Distribution::Kind::normal) {
    tensor.normal_(0.0, distribution.value, generator);
  } else {
    tensor.uniform_(-distribution.value, distribution.value, generator);
  }
}

}  // namespace bench::training
