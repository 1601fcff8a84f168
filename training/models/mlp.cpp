#include "training/models/families.hpp"
#include "training/models/layers.hpp"

namespace bench::training {

Network::Build linear_regressor(std::int64_t inputs, std::int64_t outputs) {
  return linear({.in = inputs, .out = outputs});
}

}  // namespace bench::training
