// Follows "Add a model" of docs/architecture.md: the page's own code is compiled in and trained.
#include "training/models/zoo.hpp"

#include <gtest/gtest.h>

#include <example/lenet.cpp>  // extracted from the page

namespace bench::training {
namespace {

constexpr ZooTask kClassification = ZooTask::classification;

const ModelEntry kCatalogRow[] = {
#include <example/catalog_row.inc>
};
const ZooEntry kZooRow[] = {
#include <example/zoo_row.inc>
};

TEST(AddAModel, TheRowsOfThePageAgree) {
  EXPECT_EQ(kCatalogRow[0].name, kZooRow[0].name);
  const auto model =
      make_zoo_model(kZooRow[0], kCatalogRow[0], ModelSpec(), 1, Scale::full, Init::none);
  std::int64_t parameters = 0;
  for (const NamedTensor& p : model->parameters()) parameters += p.tensor.numel();
  EXPECT_EQ(parameters, kCatalogRow[0].parameter_count);
  EXPECT_EQ(model->parameters()[0].name, "conv1.weight");
}

TEST(AddAModel, TheModelOfThePageLearns) {
  const auto model =
      make_zoo_model(kZooRow[0], kCatalogRow[0], ModelSpec(), 1, Scale::twin, Init::seeded);
  torch::manual_seed(1);
  const torch::Tensor images = torch::randn({16, 1, 28, 28});
  const torch::Tensor labels = torch::arange(16) % 10;
  std::vector<torch::Tensor> parameters;
  for (const NamedTensor& p : model->parameters()) parameters.push_back(p.tensor);
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(0.05).momentum(0.9));
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    optimizer.zero_grad();
    const torch::Tensor loss = model_loss(model->loss_kind, model->forward(images), labels);
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.5 * first);
}

}  // namespace
}  // namespace bench::training
