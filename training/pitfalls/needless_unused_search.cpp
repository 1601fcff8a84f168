// find_unused_parameters=True on a model that uses all of its parameters: a walk over the graph and
// an all-reduce of the used-parameter map in every step, and buckets that never follow the order in
// which gradients really arrive.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"

#include <algorithm>
#include <chrono>

namespace bench::training {
namespace {

constexpr int kLayers = 60;
constexpr int kWarmUp = 3;
constexpr int kTimedSteps = 25;

Network::Build deep_chain() {
  std::vector<Network::Build> layers;
  for (int i = 0; i < kLayers; ++i) layers.push_back(linear({.in = 8, .out = 8}));
  return sequential(std::move(layers));
}

int without_gradient(const Model& model) {
  int count = 0;
  for (const NamedTensor& parameter : model.parameters())
    if (!parameter.tensor.grad().defined()) ++count;
  return count;
}

}  // namespace

void needless_unused_search(Lab& lab) {
  const auto model = lab.model(deep_chain(), lab.seed());
  DdpOptions options;
  options.find_unused_parameters = !lab.cured();
  options.bucket_cap_mb = 0.004;  // several buckets for a model of 17 KB
  const auto ddp = lab.wrap(*model, options);
  const at::Tensor input = rank_input(lab, {4, 8});
  Json& evidence = lab.evidence();
  evidence["find_unused_parameters"] = options.find_unused_parameters;
  std::vector<double> times;
  int before = 0;
  for (int step = 0; step < kWarmUp + kTimedSteps; ++step) {
    clear_gradients(*model);
    const auto begin = std::chrono::steady_clock::now();
    run_backward(call(*ddp, input).sum());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    if (step >= kWarmUp) times.push_back(took.count());
    if (step == 0) evidence["buckets_first_step"] = ddp->bucket_bytes();
    if (step == kWarmUp - 1) before = all_reduces(lab);
    lab.heartbeat();
  }
  evidence["fastest_step_ms"] = *std::min_element(times.begin(), times.end());
  evidence["all_reduces_per_step"] = (all_reduces(lab) - before) / kTimedSteps;
  evidence["buckets"] = ddp->bucket_bytes();
  evidence["unused_parameters"] = without_gradient(*model);
  evidence["steps"] = kWarmUp + kTimedSteps;
  evidence["collectives"].clear();
}

}  // namespace bench::training
