// One rank's forward pass takes longer. All ranks wait for it in the all-reduce, so that their step
// times are equal; only the time before the first collective tells which rank is slow.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace bench::training {
namespace {

constexpr int kStragglerSteps = 25;
constexpr std::chrono::milliseconds kUsualForward{8};
constexpr std::chrono::milliseconds kSlowForward{24};  // as of a throttled GPU

// A layer whose pass takes this long.
Network::Build slow_layer(std::chrono::milliseconds time) {
  return [time](Network& self) -> Network::Forward {
    const Part part = self.add("part", linear({.in = 4, .out = 4}));
    return [=](const Network&, const at::Tensor& input) {
      std::this_thread::sleep_for(time);
      return part->forward(input);
    };
  };
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

}  // namespace

void hidden_straggler(Lab& lab) {
  using Clock = std::chrono::steady_clock;
  const bool slow = !lab.cured() && lab.rank() + 1 == lab.world_size();
  const auto model = lab.model(slow_layer(slow ? kSlowForward : kUsualForward), lab.seed());
  const auto ddp = lab.wrap(*model);
  std::vector<double> compute;
  std::vector<double> wall;
  for (int step = 0; step < kStragglerSteps; ++step) {
    const auto begin = Clock::now();
    clear_gradients(*model);
    const at::Tensor loss = call(*ddp, rank_input(lab)).sum();
    compute.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    run_backward(loss);
    descend(*model, 0.001);
    wall.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  lab.evidence()["compute_seconds"] = median(compute);
  lab.evidence()["wall_seconds"] = median(wall);
}

}  // namespace bench::training
