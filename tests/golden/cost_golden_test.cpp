// What `bench diagnose --cost` says: a prediction where the script's model is one of the zoo, and
// otherwise why there is none. The predictor is a stand-in, so that no worker is needed; its figure
// means nothing.
#include "diagnose/cost/cost.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/output/render.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/golden/golden.hpp"

namespace bench::diagnose {
namespace {

const std::string kImports =
    "import torch\n"
    "import torchvision\n"
    "import pytorch_lightning as pl\n"
    "from torch import nn\n"
    "from torch.utils.data import DataLoader\n";

const std::string kTraining =
    "loader = DataLoader(data, batch_size=64)\n"
    "for x, y in loader:\n"
    "    model(x).sum().backward()\n";

std::string with_cost(const std::string& script, const std::string& rule, std::optional<int> gpus) {
  DiagnoseOptions options;
  options.selection.select = {rule};
  options.gpus = gpus;
  auto findings = diagnose_texts({{"train.py", kImports + script}}, "train.py", options);
  predict_costs(findings, [](const std::vector<CostQuestion>& questions) {
    std::vector<std::string> answers;
    for (const CostQuestion& question : questions)
      answers.push_back("predicted by a stand-in: " + question.workload.model + ", batch " +
                        std::to_string(question.workload.batch) + ", " +
                        std::to_string(question.workload.gpus) + " GPUs");
    return answers;
  });
  return render_text(findings, {1, false});
}

TEST(CostGolden, ModelOfTorchvision) {
  expect_golden("cost_torchvision.terminal",
                with_cost("model = nn.DataParallel(torchvision.models.resnet50())\n" + kTraining,
                          "DP001", 4));
}

TEST(CostGolden, ClassOfTheScript) {
  expect_golden("cost_own_class.terminal", with_cost("class Net(nn.Module):\n"
                                                     "    def __init__(self):\n"
                                                     "        super().__init__()\n"
                                                     "        self.body = nn.Linear(8, 8)\n"
                                                     "    def forward(self, x):\n"
                                                     "        return self.body(x)\n"
                                                     "model = nn.DataParallel(Net())\n" +
                                                         kTraining,
                                                     "DP001", 4));
}

std::string lightning(const std::string& body) {
  return with_cost(
      "class Classifier(pl.LightningModule):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.body = " +
          body +
          "\n"
          "loader = DataLoader(data, batch_size=64)\n"
          "trainer = pl.Trainer(strategy=\"dp\", accelerator=\"gpu\", devices=4)\n"
          "trainer.fit(Classifier(), loader)\n",
      "LIT004", 4);
}

TEST(CostGolden, LightningModule) {
  expect_golden("cost_lightning.terminal", lightning("nn.Linear(8, 8)"));
}

TEST(CostGolden, LightningModuleAroundAModelOfTorchvision) {
  expect_golden("cost_lightning_torchvision.terminal", lightning("torchvision.models.resnet50()"));
}

TEST(CostGolden, GpusNotKnown) {
  expect_golden("cost_gpus_not_known.terminal",
                with_cost("model = nn.DataParallel(torchvision.models.resnet50())\n" + kTraining,
                          "DP001", {}));
}

}  // namespace
}  // namespace bench::diagnose
