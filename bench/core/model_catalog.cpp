#include "bench/core/model_catalog.hpp"

namespace bench {

// One row per model, in the order `bench list models` shows them. The factory of the same name is a
// row of training/models/zoo.cpp. Counts are torchvision's, checked against it by tests/torch.
std::span<const ModelEntry> model_catalog() {
  static const std::vector<ModelEntry> kCatalog = {
      {"mlp",
       "one Linear layer 12800-6400 with MSE loss: all parameters, hardly any arithmetic",
       {12800},
       {1280},
       81'926'400},
      {"resnet18",
       "ResNet-18, the small convolutional classifier",
       {3, 224, 224},
       {3, 64, 64},
       11'689'512},
      {"resnet50",
       "ResNet-50, the classifier most published scaling figures use",
       {3, 224, 224},
       {3, 64, 64},
       25'557'032},
  };
  return kCatalog;
}

const ModelEntry* find_model(std::string_view name) {
  for (const ModelEntry& entry : model_catalog()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace bench
