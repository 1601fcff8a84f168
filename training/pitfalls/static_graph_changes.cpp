// static_graph=True, and a layer that is used in the first step only.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr int kGraphSteps = 4;

Network::Build with_optional_layer(std::shared_ptr<bool> used) {
  return [used](Network& self) -> Network::Forward {
    const Part always = self.add("always", linear({.in = 4, .out = 4}));
    const Part sometimes = self.add("sometimes", linear({.in = 4, .out = 4}));
    return [=](const Network&, const at::Tensor& input) {
      const at::Tensor output = always->forward(input);
      return *used ? sometimes->forward(output) : output;
    };
  };
}

}  // namespace

void static_graph_changes(Lab& lab) {
  const auto used = std::make_shared<bool>(true);
  const auto model = lab.model(with_optional_layer(used), lab.seed());
  DdpOptions options;
  options.static_graph = !lab.cured();
  options.find_unused_parameters = lab.cured();
  const auto ddp = lab.wrap(*model, options);
  Json& evidence = lab.evidence();
  evidence["static_graph"] = options.static_graph;
  evidence["steps"] = 0;
  lab.attempt([&] {
    for (int step = 0; step < kGraphSteps; ++step) {
      *used = step == 0;
      clear_gradients(*model);
      run_backward(call(*ddp, rank_input(lab)).sum());
      descend(*model, 0.001);
      evidence["steps"] = step + 1;
    }
  });
}

}  // namespace bench::training
