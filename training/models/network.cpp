#include "training/models/network.hpp"

#include <utility>

namespace bench::training {

Network::Network(Build build) : build_(std::move(build)) { reset(); }

void Network::reset() { forward_ = build_(*this); }

torch::Tensor Network::forward(const torch::Tensor& input) const { return forward_(*this, input); }

torch::Tensor Network::parameter(const std::string& name, torch::IntArrayRef sizes,
                                 const Distribution& distribution) {
  torch::Tensor tensor = register_parameter(name, torch::empty(sizes));
  InitScope::fill(tensor, distribution);
  return tensor;
}

torch::Tensor Network::buffer(const std::string& name, torch::Tensor value) {
  return register_buffer(name, std::move(value));
}

Part Network::add(const std::string& name, const Build& build) {
  return register_module(name, std::make_shared<Network>(build));
}

Chain& Chain::then(const Network::Build& build) {
  return then(std::to_string(parts_.size()), build);
}

Chain& Chain::then(const std::string& name, const Network::Build& build) {
  parts_.push_back(owner_.add(name, build));
  return *this;
}

Network::Forward Chain::forward() const {
  return [parts = parts_](const Network&, const torch::Tensor& input) {
    torch::Tensor value = input;
    for (const Part& part : parts) value = part->forward(value);
    return value;
  };
}

Network::Build sequential(std::vector<Network::Build> builds) {
  return [builds = std::move(builds)](Network& self) {
    Chain chain(self);
    for (const Network::Build& build : builds) chain.then(build);
    return chain.forward();
  };
}

}  // namespace bench::training
