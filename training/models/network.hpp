// A network as a function: a Build registers parameters, buffers and children on the Network it is
// given and returns what a forward pass does. One class serves layers, blocks and whole models, and
// satisfies torch::nn::Cloneable, which torch::nn::parallel::data_parallel needs.
#pragma once

#include "training/models/distribution.hpp"

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench::training {

class Network : public torch::nn::Cloneable<Network> {
 public:
  // Cloning reassigns networks in place, so a forward pass gets the network it runs for; it may
  // capture tensors and children, never the Network of its Build.
  using Forward = std::function<torch::Tensor(const Network&, const torch::Tensor&)>;
  using Build = std::function<Forward(Network&)>;

  explicit Network(Build build);

  void reset() override;
  torch::Tensor forward(const torch::Tensor& input) const;

  // For Builds. Order of the calls is definition order, which DDP's buckets depend on.
  torch::Tensor parameter(const std::string& name, torch::IntArrayRef sizes,
                          const Distribution& distribution);
  torch::Tensor buffer(const std::string& name, torch::Tensor value);
  std::shared_ptr<Network> add(const std::string& name, const Build& build);

  // Its randomness can be switched off without touching the rest, see Model::disable_dropout().
  bool marked_as_dropout = false;

 private:
  Build build_;
  Forward forward_;
};

using Part = std::shared_ptr<Network>;

// Collects children that run one after the other, as nn.Sequential does.
class Chain {
 public:
  explicit Chain(Network& owner) : owner_(owner) {}

  Chain& then(const Network::Build& build);  // named by position: "0", "1", ...
  Chain& then(const std::string& name, const Network::Build& build);
  Network::Forward forward() const;

 private:
  Network& owner_;
  std::vector<Part> parts_;
};

// nn.Sequential of these builds.
Network::Build sequential(std::vector<Network::Build> builds);

}  // namespace bench::training
