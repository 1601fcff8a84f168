// Costs of findings: what a script says about its workload, and where the figure comes from.
#include "diagnose/cost/cost.hpp"

#include "diagnose/driver/diagnose.hpp"
#include "diagnose/output/render.hpp"
#include "scenarios/pitfalls/laboratory/laboratory.hpp"
#include "scenarios/pitfalls/laboratory/laboratory_costs.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <tuple>

namespace bench::diagnose {
namespace {

const char* const kDataParallel =
    "import argparse, torch\n"
    "import torchvision.models as models\n"
    "from torch.utils.data import DataLoader\n"
    "parser = argparse.ArgumentParser()\n"
    "parser.add_argument('--arch', default='resnet50')\n"
    "parser.add_argument('--batch-size', type=int, default=256)\n"
    "args = parser.parse_args()\n"
    "model = torch.nn.DataParallel(models.__dict__[args.arch](), device_ids=[0, 1, 2, 3]).cuda()\n"
    "loader = DataLoader(data, batch_size=args.batch_size)\n"
    "for x, y in loader:\n"
    "    model(x).sum().backward()\n";

const char* const kAccumulation =
    "import torch, torchvision\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "from torch.utils.data import DataLoader, DistributedSampler\n"
    "model = DDP(torchvision.models.resnet18())\n"
    "loader = DataLoader(data, 64, sampler=DistributedSampler(data))\n"
    "for i, x in enumerate(loader):\n"
    "    model(x).sum().backward()\n"
    "    if (i + 1) % 4 == 0:\n"
    "        optimizer.step()\n";

Workload workload(const std::string& text, std::optional<std::string> launch = {},
                  std::optional<int> gpus = {}) {
  const Module module("train.py", "train", text);
  ProgramInput input;
  input.modules.push_back(&module);
  input.gpus = gpus;
  if (launch) input.launches.push_back(parse_launch(*launch).value());
  return workload_of(Program(std::move(input)));
}

std::vector<Finding> findings_of(const std::string& text, const std::string& rule,
                                 std::optional<std::string> launch = {}) {
  DiagnoseOptions options;
  options.selection.select = {rule};
  options.launch = std::move(launch);
  return diagnose_texts({{"train.py", text}}, "train.py", options);
}

std::string evidence(const Finding& finding, std::string_view key) {
  for (const auto& [name, value] : finding.evidence)
    if (name == key) return value;
  return {};
}

TEST(Workload, IsReadFromLiteralsDefaultsAndLaunchLines) {
  const Workload dp = workload(kDataParallel);
  EXPECT_EQ(dp.model, "resnet50");
  EXPECT_EQ(dp.batch, 256);
  EXPECT_EQ(dp.gpus, 4);
  const Workload ddp = workload(kAccumulation, "torchrun --nnodes 2 --nproc-per-node 8 train.py");
  EXPECT_EQ(ddp.model, "resnet18");
  EXPECT_EQ(ddp.batch, 64);
  EXPECT_EQ(ddp.gpus, 16);
  EXPECT_EQ(ddp.accumulation, 4);
  EXPECT_EQ(workload(kAccumulation).gpus, 0);
  EXPECT_EQ(workload(kAccumulation, {}, 2).gpus, 2);
}

// The models of these names, wrapped.
std::string wrapping(const std::string& text, const std::string& names) {
  std::string out = "import torch\n" + text;
  for (const char name : names)
    out += std::string("torch.nn.parallel.DistributedDataParallel(") + name + ")\n";
  return out;
}

TEST(Workload, KnowsTheWaysModelsAreBuilt) {
  const std::pair<const char*, const char*> rows[] = {
      {"import torchvision\nm = torchvision.models.resnet34(weights=None)\n", "resnet34"},
      {"from torchvision.models import vgg16\nm = vgg16()\n", "vgg16"},
      {"from torchvision import models\nm = models.densenet121()\n", "densenet121"},
      {"import timm\nm = timm.create_model('resnet50', pretrained=True)\n", "resnet50"},
      {"import torch\nm = torch.hub.load('pytorch/vision', 'resnet101')\n", "resnet101"},
      {"from torchvision import models\nm = models.get_model('mobilenet_v2')\n", "mobilenet_v2"},
      {"from mine import resnet50\nm = resnet50()\n", ""},
      {"from torchvision import models\nm = models.alexnet()\n", ""},
      {"from torchvision import models\nm = getattr(models, name)()\n", ""},
  };
  for (const auto& [text, model] : rows)
    EXPECT_EQ(workload(wrapping(text, "m")).model, model) << text;
  const std::string two =
      "from torchvision import models\nm = models.resnet18()\nn = models.resnet50()\n";
  EXPECT_EQ(workload(wrapping(two, "m")).model, "resnet18");
  EXPECT_EQ(workload(wrapping(two, "mn")).model, "");
  EXPECT_EQ(workload(two).model, "") << "none is wrapped";
}

const char* const kClasses =
    "import torch.nn as nn\n"
    "import torchvision.models as models\n"
    "class Own(nn.Module):\n"
    "    def __init__(self):\n"
    "        self.body = nn.Conv2d(3, 3, 3)\n"
    "class Around(nn.Module):\n"
    "    def __init__(self):\n"
    "        self.body = models.resnet34()\n"
    "        self.head = nn.Linear(1000, 2)\n"
    "class Outer(nn.Module):\n"
    "    def __init__(self, body=None):\n"
    "        self.body = Around()\n"
    "class Mixed(nn.Module):\n"
    "    def __init__(self):\n"
    "        self.body = models.resnet34()\n"
    "        self.neck = Own()\n"
    "class Given(nn.Module):\n"
    "    def __init__(self, body):\n"
    "        self.body = body\n"
    "class Frozen(nn.Module):\n"
    "    def __init__(self):\n"
    "        self.loss = models.vgg16()\n"
    "        self.loss.requires_grad_(False)\n";

TEST(Workload, IsOfTheModelThatIsWrapped) {
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"m = Own()\nteacher = models.resnet152().eval()\n", "", "Own"},
      {"m = Around()\n", "resnet34", ""},
      {"m = Outer()\n", "resnet34", ""},
      {"m = Mixed()\n", "", "Mixed"},
      {"m = Given(models.resnet50())\n", "resnet50", ""},
      {"m = Given(Own())\n", "", "Given"},
      {"m = Frozen()\n", "", "Frozen"},
      {"m = models.resnet50().cuda()\nteacher = Own()\n", "resnet50", ""},
      {"m = build()\nteacher = models.resnet50()\n", "", ""},
      {"m = models.resnet50() if big else Own()\n", "", ""},
  };
  for (const auto& [text, model, own] : rows) {
    const Workload work = workload(wrapping(std::string(kClasses) + text, "m"));
    EXPECT_EQ(work.model, model) << text;
    EXPECT_EQ(work.own_class, own) << text;
  }
  const std::string either =
      "if distributed:\n    m = torch.nn.parallel.DistributedDataParallel(m)\n"
      "elif several:\n    m = nn.DataParallel(m)\n";
  EXPECT_EQ(workload("import torch\n" + std::string(kClasses) + "m = Own()\n" + either).own_class,
            "Own");
}

TEST(Workload, CountsTheGpusThatAreSaid) {
  const std::string ids = kDataParallel;  // of four
  std::string open = kDataParallel;
  open.replace(open.find(", device_ids=[0, 1, 2, 3]"), 25, "");
  EXPECT_EQ(workload(ids, "python train.py").gpus, 4);
  EXPECT_EQ(workload(ids, "CUDA_VISIBLE_DEVICES=0,1,2,3,4 python train.py").gpus, 4);
  EXPECT_EQ(workload(ids, "python train.py", 8).gpus, 8);
  EXPECT_EQ(workload(open, "python train.py").gpus, 0) << "it takes all that there are";
  EXPECT_EQ(workload(open, "CUDA_VISIBLE_DEVICES=0,1 python train.py").gpus, 2);
  EXPECT_EQ(workload(open, "CUDA_VISIBLE_DEVICES=0 python train.py").gpus, 1);
  const std::string spawn =
      "import torch.multiprocessing as mp\nmp.spawn(work, nprocs=4, args=())\n";
  EXPECT_EQ(workload(spawn, "python train.py").gpus, 4);
  EXPECT_EQ(workload(kAccumulation,
                     "CUDA_VISIBLE_DEVICES=0,1,2 torchrun --nproc_per_node=2 "
                     "train.py")
                .gpus,
            2);
}

TEST(Workload, IsNotKnownWhereLoadersDiffer) {
  EXPECT_EQ(workload("from torch.utils.data import DataLoader\n"
                     "a = DataLoader(x, batch_size=8)\nb = DataLoader(y, batch_size=16)\n")
                .batch,
            0);
  EXPECT_EQ(
      workload("from torch.utils.data import DataLoader\na = DataLoader(x, batch_size=n)\n").batch,
      0);
}

TEST(Cost, IsComputedWhereTheScriptSaysEnough) {
  const auto found = findings_of(kAccumulation, "DDP010");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(evidence(found[0], "cost"),
            "computed: 3 of the 4 reductions of a step are wasted, 45 MiB of gradients each "
            "(resnet18)");
  std::string odd = kDataParallel;
  odd.replace(odd.find("256"), 3, "6");
  const auto idle = findings_of(odd, "DP004");
  ASSERT_EQ(idle.size(), 1U);
  EXPECT_EQ(evidence(idle[0], "cost"), "computed: 25.0 % of the GPUs' time in a pass is idle");
}

TEST(Cost, IsTheLaboratorysWhereTheScriptSaysLess) {
  std::string unknown = kAccumulation;
  unknown.replace(unknown.find("torchvision.models.resnet18()"), 29, "Net()");
  const auto found = findings_of(unknown, "DDP010");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(evidence(found[0], "cost"), pitfalls::laboratory_cost("accumulation-without-no-sync"));
  EXPECT_TRUE(evidence(found[0], "cost").starts_with("laboratory: "));
}

TEST(Cost, IsPredictedForEqualQuestionsOnce) {
  auto found = findings_of(kDataParallel, "DP001");
  auto again = found;
  found.insert(found.end(), again.begin(), again.end());
  int calls = 0;
  predict_costs(found, [&](const std::vector<CostQuestion>& questions) {
    ++calls;
    EXPECT_EQ(questions.size(), 1U);
    EXPECT_EQ(questions[0].rule, "DP001");
    EXPECT_EQ(questions[0].workload.model, "resnet50");
    EXPECT_EQ(questions[0].workload.batch, 256);
    EXPECT_EQ(questions[0].workload.gpus, 4);
    return std::vector<std::string>{"predicted on 4xv100-sxm2: twice"};
  });
  EXPECT_EQ(calls, 1);
  for (const Finding& finding : found)
    EXPECT_EQ(evidence(finding, "cost"), "predicted on 4xv100-sxm2: twice");
}

TEST(Cost, IsNotAskedForWhereAFactIsUnknown) {
  std::string text = kDataParallel;
  text.replace(text.find("default='resnet50'"), 18, "required=True");
  auto found = findings_of(text, "DP001");
  ASSERT_FALSE(found.empty());
  predict_costs(found, [](const std::vector<CostQuestion>&) -> std::vector<std::string> {
    ADD_FAILURE() << "asked although the model is not known";
    return {};
  });
}

TEST(Cost, StandsInEveryFormat) {
  auto found = findings_of(kAccumulation, "DDP010");
  const std::string cost = "3 of the 4 reductions";
  EXPECT_NE(render_text(found, {1, false}).find("  = cost: computed: " + cost), std::string::npos);
  EXPECT_NE(render_markdown(found, {1, false}).find(cost), std::string::npos);
  EXPECT_NE(render_github(found, {1, false}).find(cost), std::string::npos);
  const auto json = nlohmann::json::parse(render_json(found, {1, false}));
  EXPECT_NE(json["findings"][0]["evidence"]["cost"].get<std::string>().find(cost),
            std::string::npos);
  const auto sarif = nlohmann::json::parse(render_sarif(found, {1, false}));
  const auto& properties = sarif["runs"][0]["results"][0]["properties"];
  EXPECT_NE(properties["cost"].get<std::string>().find(cost), std::string::npos);
  EXPECT_EQ(properties["model"], "resnet18");
}

TEST(LaboratoryCosts, AreOfTheMistakeThatIsFound) {
  using pitfalls::laboratory_cost;
  const std::string few = laboratory_cost("loader-oversubscription", "too-few");
  EXPECT_NE(few.find("waiting for samples"), std::string::npos);
  EXPECT_NE(few.find("(too-few)"), std::string::npos);
  EXPECT_EQ(laboratory_cost("loader-oversubscription"), "") << "its trials contradict each other";
  EXPECT_EQ(laboratory_cost("loader-oversubscription", kNoTrial), "");
  EXPECT_EQ(laboratory_cost("data-not-sharded", kNoTrial), "");
  EXPECT_EQ(laboratory_cost("rank-conditional-collective"),
            "laboratory: hung until it was stopped after 5 s, where NCCL waits for 10 minutes by "
            "default")
      << "all trials of the rule agree";
}

TEST(LaboratoryCosts, AreLeftOutWhereNoTrialMakesTheMistake) {
  const std::string moved =
      "import torch\n"
      "model = torch.nn.Linear(8, 8)\n"
      "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
      "model.to('cuda')\n"
      "for x in data:\n"
      "    model(x).sum().backward()\n"
      "    optimizer.step()\n";
  const auto on_gpu = findings_of(moved, "DDP045");
  ASSERT_EQ(on_gpu.size(), 1U);
  EXPECT_EQ(evidence(on_gpu[0], "cost"), "");
  const auto on_xla = findings_of("import torch_xla\n" + moved, "DDP045");
  ASSERT_EQ(on_xla.size(), 1U);
  EXPECT_NE(evidence(on_xla[0], "cost").find("without effect"), std::string::npos);
}

TEST(LaboratoryCosts, NameTrialsThatThereAre) {
  std::istringstream rows{std::string(pitfalls::laboratory_costs_csv())};
  std::size_t count = 0;
  for (std::string row; std::getline(rows, row); ++count) {
    const std::string rule = row.substr(0, row.find(';'));
    const std::string form =
        row.substr(rule.size() + 1, row.find(';', rule.size() + 1) - rule.size() - 1);
    bool known = false;
    for (const pitfalls::Trial& trial : pitfalls::all_trials())
      known = known || (trial.rule == rule && trial.form == form);
    EXPECT_TRUE(known) << row << ": write the table anew with scripts/laboratory_costs";
  }
  EXPECT_GE(count, 25U);
  EXPECT_EQ(pitfalls::laboratory_cost("no-such-rule"), "");
}

}  // namespace
}  // namespace bench::diagnose
