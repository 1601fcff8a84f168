// Extremes of gradient bucketing: a reduction for every parameter, one reduction that waits for the
// last gradient, and parameters so small that their handling outweighs their arithmetic.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <algorithm>
#include <chrono>

namespace bench::training {
namespace {

constexpr int kBucketSteps = 8;
constexpr int kWarmup = 3;  // the second step rebuilds the buckets
constexpr double kTinyCap = 0.001;
constexpr double kHugeCap = 1000;
constexpr int kSmallParameters = 2048;
constexpr std::int64_t kSmallSize = 4;

Network::Build square_layers(int count, std::int64_t width) {
  return sequential(std::vector<Network::Build>(static_cast<std::size_t>(count),
                                                linear({.in = width, .out = width})));
}

// Adds the same values to its input, from many parameters or from one.
Network::Build added_values(bool split) {
  return [split](Network& self) -> Network::Forward {
    std::vector<at::Tensor> parts;
    const int count = split ? kSmallParameters : 1;
    const std::int64_t size = kSmallParameters * kSmallSize / count;
    for (int i = 0; i < count; ++i)
      parts.push_back(self.parameter("p" + std::to_string(i), {size}, constant(0.1)));
    return [parts](const Network&, const at::Tensor& input) {
      return input + (parts.size() == 1 ? parts.front() : torch::cat(parts));
    };
  };
}

struct BucketTrial {
  Network::Build build;
  DdpOptions options;
  std::vector<std::int64_t> input;
};

BucketTrial bucket_trial(const Lab& lab) {
  BucketTrial trial;
  if (lab.form() == "many-tiny-parameters") {
    trial.build = added_values(!lab.cured());
    trial.input = {1, kSmallParameters * kSmallSize};
  } else if (lab.form() == "tiny-buckets") {
    trial.build = square_layers(32, 16);
    trial.input = {4, 16};
    if (!lab.cured()) trial.options.bucket_cap_mb = kTinyCap;
  } else {
    trial.build = square_layers(16, 256);
    trial.input = {4, 256};
    if (!lab.cured()) trial.options.bucket_cap_mb = kHugeCap;
  }
  return trial;
}

}  // namespace

void bucket_configuration(Lab& lab) {
  const BucketTrial trial = bucket_trial(lab);
  const auto model = lab.model(trial.build, lab.seed());
  const auto ddp = lab.wrap(*model, trial.options);
  const at::Tensor input = rank_input(lab, trial.input) * 1e-3;
  // How many gradients exist when the first reduction of the last step is issued.
  int ready = 0;
  int issued_before = 0;
  int ready_at_first = 0;
  for (const NamedTensor& parameter : model->parameters())
    parameter.tensor.register_hook([&](const at::Tensor& gradient) {
      ++ready;
      if (all_reduces(lab) == issued_before) ready_at_first = ready;
      return gradient;
    });
  std::vector<double> seconds;
  for (int step = 0; step < kBucketSteps; ++step) {
    lab.evidence()["collectives"] = Json::array();
    clear_gradients(*model);
    ready = ready_at_first = issued_before = 0;
    const auto begin = std::chrono::steady_clock::now();
    run_backward(call(*ddp, input).mean());
    descend(*model, 1e-6);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (step >= kWarmup) seconds.push_back(took.count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::int64_t bytes = 0;
  for (const NamedTensor& parameter : model->parameters())
    bytes += static_cast<std::int64_t>(parameter.tensor.nbytes());
  Json& evidence = lab.evidence();
  evidence["bucket_count"] = ddp->bucket_bytes().size();
  evidence["gradient_count"] = model->parameters().size();
  evidence["gradient_bytes"] = bytes;
  evidence["gradients_at_first_reduction"] = ready_at_first;
  evidence["median_step_seconds"] = seconds.at(seconds.size() / 2);
  evidence["collectives"] = Json::array();
}

}  // namespace bench::training
