// A network of the zoo as the strategies see it.
#pragma once

#include "training/models/model.hpp"
#include "training/models/network.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace bench::training {

class ZooModel : public Model {
 public:
  // Builds the network; without a seed its random parameters stay unfilled.
  ZooModel(Network::Build build, std::optional<std::uint64_t> seed);

  torch::Tensor forward(const torch::Tensor& input) override { return network_->forward(input); }
  std::shared_ptr<Network> torch_module() const override { return network_; }
  void train(bool on) override;
  void disable_dropout() override;
  std::vector<NamedTensor> parameters() const override;
  std::vector<NamedTensor> buffers() const override;
  std::int64_t module_count() const override;
  std::unique_ptr<Model> shell() const override;

 private:
  Network::Build build_;
  bool filled_;
  bool dropout_ = true;
  Part network_;
};

}  // namespace bench::training
