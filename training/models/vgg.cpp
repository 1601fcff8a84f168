// VGG of Simonyan and Zisserman (arXiv 1409.1556), configuration D without batch normalisation, as
// torchvision's vgg16.
#include "training/models/families.hpp"
#include "training/models/layers.hpp"

namespace bench::training {
namespace {

constexpr double kVggClassifierDeviation = 0.01;
constexpr double kVggDropout = 0.5;

LinearOptions vgg_linear(std::int64_t in, std::int64_t out) {
  return {in, out, normal(kVggClassifierDeviation), constant(0)};
}

// Stages of 3x3 convolutions, each followed by a pooling that halves the resolution.
Network::Build vgg_features() {
  struct Stage {
    std::int64_t convolutions;
    std::int64_t channels;
  };
  std::vector<Network::Build> layers;
  std::int64_t in = 3;
  for (const Stage& stage : {Stage{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}) {
    for (std::int64_t i = 0; i < stage.convolutions; ++i) {
      layers.push_back(
          conv2d({.in = in, .out = stage.channels, .kernel = 3, .padding = 1, .bias = true}));
      layers.push_back(relu());
      in = stage.channels;
    }
    layers.push_back(max_pool2d({.kernel = 2, .stride = 2}));
  }
  return sequential(std::move(layers));
}

}  // namespace

Network::Build vgg16(std::int64_t hidden, std::int64_t classes) {
  return [hidden, classes](Network& self) -> Network::Forward {
    const Part features = self.add("features", vgg_features());
    const Part pool = self.add("avgpool", adaptive_avg_pool2d(7, 7));
    const Part classifier = self.add(
        "classifier", sequential({linear(vgg_linear(512 * 7 * 7, hidden)), relu(),
                                  dropout(kVggDropout), linear(vgg_linear(hidden, hidden)), relu(),
                                  dropout(kVggDropout), linear(vgg_linear(hidden, classes))}));
    return [=](const Network&, const torch::Tensor& x) {
      return classifier->forward(torch::flatten(pool->forward(features->forward(x)), 1));
    };
  };
}

}  // namespace bench::training
