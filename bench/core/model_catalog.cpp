#include "bench/core/model_catalog.hpp"

namespace bench {

// One row per model, in the order `bench list models` shows them. The factory of the same name is a
// row of training/models/zoo.cpp. Counts are torchvision's, checked against it by tests/torch.
std::span<const ModelEntry> model_catalog() {
  static const std::vector<std::int64_t> kImage = {3, 224, 224};
  static const std::vector<std::int64_t> kSmallImage = {3, 64, 64};
  static const std::vector<ModelEntry> kCatalog = {
      {"mlp",
       "one Linear layer 12800-6400 with MSE loss: all parameters, hardly any arithmetic",
       {12800},
       {1280},
       81'926'400},
      {"resnet18", "ResNet-18, the small convolutional classifier", kImage, kSmallImage,
       11'689'512},
      {"resnet34", "ResNet-34, basic blocks, twice the depth of ResNet-18", kImage, kSmallImage,
       21'797'672},
      {"resnet50", "ResNet-50, the classifier most published scaling figures use", kImage,
       kSmallImage, 25'557'032},
      {"resnet101", "ResNet-101, bottleneck blocks", kImage, kSmallImage, 44'549'160},
      {"resnet152", "ResNet-152, the deepest ResNet", kImage, kSmallImage, 60'192'808},
      {"resnext50_32x4d", "ResNeXt-50, grouped convolutions", kImage, kSmallImage, 25'028'904},
      {"wide_resnet50_2", "wide ResNet-50, twice the inner width", kImage, kSmallImage, 68'883'240},
      {"vgg16", "VGG-16, most parameters in three linear layers: hard on communication", kImage,
       kSmallImage, 138'357'544},
      {"densenet121", "DenseNet-121, few parameters, much activation memory, many small operations",
       kImage, kSmallImage, 7'978'856},
      {"mobilenet_v2", "MobileNetV2, small and bound by launches and memory bandwidth", kImage,
       kSmallImage, 3'504'872},
      {"gpt2",
       "GPT-2 small, a language model on sequences of 1024 tokens",
       {1024},
       {32},
       124'439'808,
       "int64"},
      {"bert_base",
       "BERT base, masked language model on sequences of 512 tokens",
       {512},
       {32},
       109'514'298,
       "int64"},
      {"bert_large",
       "BERT large, masked language model on sequences of 512 tokens",
       {512},
       {32},
       335'174'458,
       "int64"},
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
