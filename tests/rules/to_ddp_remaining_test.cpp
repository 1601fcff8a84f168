// What bench diagnose --to-ddp leaves to the author of models, losses and decisions: for each topic
// scripts of which something is told, and others like them of which nothing is.
#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

TEST(ToDdpRemaining, TellsWhereGradientsMayBeMissing) {
  const std::string branch =
      "class Two(nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.a = nn.Linear(8, 2)\n"
      "        self.b = nn.Linear(8, 2)\n"
      "    def forward(self, x, fast=False):\n"
      "        if fast:\n"
      "            return self.a(x)\n"
      "        return self.b(x)\n";
  EXPECT_TOLD(told({.above = branch, .net = "Two().cuda()"}), "Two runs layers under a condition");
  EXPECT_TOLD(told({.net = "somewhere.build().cuda()"}),
              "it cannot be followed which model this is");
  EXPECT_TOLD(told({.above = "import torchvision\n"
                             "class Deep(nn.Module):\n"
                             "    def __init__(self):\n"
                             "        super().__init__()\n"
                             "        self.body = torchvision.models.resnet18()\n"
                             "    def forward(self, x):\n"
                             "        return self.body.layer1(self.body.conv1(x))\n",
                    .net = "Deep().cuda()"}),
              "Deep holds a library's model");
  const std::string option =
      "class Maybe(nn.Module):\n"
      "    def __init__(self, down=None):\n"
      "        super().__init__()\n"
      "        self.fc = nn.Linear(8, 2)\n"
      "        self.down = down\n"
      "    def forward(self, x):\n"
      "        if self.down is not None:\n"
      "            x = self.down(x)\n"
      "        return self.fc(x)\n";
  EXPECT_SILENT(told({.above = option, .net = "Maybe().cuda()"}), "waits for a gradient");
  EXPECT_SILENT(
      told({.above = "import torchvision\n", .net = "torchvision.models.resnet18().cuda()"}),
      "waits for a gradient");
}

TEST(ToDdpRemaining, TellsWhereGradientsMayBeMissingForEachWrapper) {
  const std::string heads =
      "class Heads(nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.body = nn.Linear(8, 8)\n"
      "        heads = [nn.Linear(8, 2) for _ in range(3)]\n"
      "        self.heads = nn.ModuleList(heads)\n"
      "    def forward(self, x, mode):\n"
      "        x = self.body(x)\n";
  const std::string chosen = heads +
                             "        index = int(mode[0].item())\n"
                             "        return self.heads[index](x)\n";
  const std::string left = told({.above = chosen,
                                 .net = "Heads().cuda()",
                                 .wrap = "model = nn.DataParallel(model)\n"
                                         "other = nn.DataParallel(somewhere.build())\n"});
  EXPECT_TOLD(left, "Heads runs those of its layers that an argument chooses (train.py:");
  EXPECT_TOLD(left, "not all may get one: it cannot be followed which model this is. If");
  EXPECT_SILENT(told({.above = heads + "        for index in range(len(self.heads)):\n"
                                       "            x = x + self.heads[index](x).sum()\n"
                                       "        return x\n",
                      .net = "Heads().cuda()"}),
                "waits for a gradient");
}

TEST(ToDdpRemaining, TellsLayersBesideTheForwardPass) {
  const auto with = [](const std::string& forward, const std::string& other = "") {
    return told({.above = "class Whole(nn.Module):\n"
                          "    def __init__(self):\n"
                          "        super().__init__()\n"
                          "        self.body = nn.Linear(8, 2)\n"
                          "        self.head = nn.Sequential(nn.Linear(2, 2), nn.ReLU())\n"
                          "    def pretrain(self, x):\n"
                          "        return self.contrast(self.body(x))\n"
                          "    def contrast(self, x):\n"
                          "        return self.head(x)\n"
                          "    def forward(self, x):\n"
                          "        return " +
                          forward + "\n" + other,
                 .net = "Whole().cuda()"});
  };
  const std::string words = "Whole has a layer that its forward pass does not run (train.py:";
  EXPECT_TOLD(with("self.body(x)"), words);
  EXPECT_SILENT(with("self.contrast(self.body(x))"), words);
  EXPECT_SILENT(with("self.body(x)",
                     "def freeze(net):\n"
                     "    for p in net.head.parameters():\n"
                     "        p.requires_grad = False\n"),
                words);
}

TEST(ToDdpRemaining, TellsWeightsThatEachRankFinds) {
  const std::string words = "each rank puts what it has found for itself into its own copy";
  EXPECT_TOLD(told({.before = "centers = train_kmeans(features, 9)\n"
                              "model.module.fc.weight.data.copy_(torch.from_numpy(centers))\n"}),
              words);
  EXPECT_TOLD(told({.before = "km = KMeans(n_clusters=9).fit(features)\n"
                              "model.module.fc.weight.data = torch.tensor(km.cluster_centers_)\n"}),
              words);
  EXPECT_SILENT(told({.before = "model.module.fc.weight.data.copy_(torch.load('fc.pt'))\n"}),
                words);
  // The wrapper sends those of rank 0.
  EXPECT_SILENT(told({.net = "Net().cuda()\ncenters = train_kmeans(features, 9)\n"
                             "model.fc.weight.data.copy_(torch.from_numpy(centers))"}),
                words);
}

TEST(ToDdpRemaining, TellsModelsBesideTheWrapper) {
  EXPECT_TOLD(told({.before = "critic = Net().cuda()\n"
                              "other = torch.optim.Adam(critic.parameters())\n"}),
              "`critic` is trained without a wrapper");
  EXPECT_TOLD(told({.before = "head = nn.Linear(2, 2).cuda()\n"
                              "both = torch.optim.Adam(list(model.parameters()) + "
                              "list(head.parameters()))\n"}),
              "`head` is trained without a wrapper");
  EXPECT_SILENT(told({.net = "Net().cuda()\nraw = model",
                      .before = "other = torch.optim.Adam(raw.parameters())\n"}),
                "without a wrapper");
  EXPECT_SILENT(told({.before = "other = torch.optim.Adam(model.module.fc.parameters())\n"}),
                "without a wrapper");
}

TEST(ToDdpRemaining, TellsTestsOfTheOldWrapper) {
  EXPECT_TOLD(told({.end = "if type(model) is nn.DataParallel:\n    model = model.module\n"}),
              "asks for DataParallel");
  EXPECT_TOLD(told({.end = "if model.__class__.__name__ == 'DataParallel':\n"
                           "    model = model.module\n"}),
              "asks for DataParallel");
  EXPECT_SILENT(told({.end = "both = (nn.DataParallel, nn.parallel.DistributedDataParallel)\n"
                             "if isinstance(model, (nn.DataParallel, "
                             "nn.parallel.DistributedDataParallel)):\n    model = model.module\n"}),
                "asks for DataParallel");
  EXPECT_SILENT(told({.end = "if hasattr(model, 'module'):\n    model = model.module\n"}),
                "asks for DataParallel");
}

TEST(ToDdpRemaining, TellsCallsThatNeedDataParallel) {
  EXPECT_TOLD(told({.before = "if several:\n    patch_replication_callback(model)\n"}),
              "takes a DataParallel");
  EXPECT_SILENT(told({.above = "def patch_replication_callback(m):\n    pass\n"}),
                "takes a DataParallel");
}

TEST(ToDdpRemaining, TellsMovesOfTheWrappedModel) {
  const std::string move =
      "    model.cpu()\n"
      "    torch.save(model.module.state_dict(), 'm.pt')\n"
      "    model.cuda()\n";
  EXPECT_TOLD(told({.behind = move}), "moves to the CPU");
  EXPECT_SILENT(told({.end = "model.cpu()\n"}), "moves to the CPU");
  EXPECT_SILENT(told({.behind = "    print(loss.cpu())\n"}), "moves to the CPU");
}

TEST(ToDdpRemaining, TellsWrappersUnderOptions) {
  EXPECT_TOLD(told({.wrap = "if args.multi:\n    model = nn.DataParallel(model)\n"}),
              "stands under `args.multi`");
  // Steps ask for the group there, or give the option in the launch line.
  EXPECT_SILENT(told({.wrap = "if len(gpu_ids) > 1:\n    model = nn.DataParallel(model)\n"}),
                "stands under");
  const std::string option =
      "import argparse\n"
      "parser = argparse.ArgumentParser()\n"
      "parser.add_argument('--multi', action='store_true')\n"
      "args = parser.parse_args()\n";
  EXPECT_SILENT(
      told({.above = option, .wrap = "if args.multi:\n    model = nn.DataParallel(model)\n"}),
      "stands under");
  EXPECT_SILENT(told({.wrap = "n_gpu = torch.cuda.device_count()\n"
                              "if n_gpu > 1:\n    model = nn.DataParallel(model)\n"}),
                "stands under");
  EXPECT_SILENT(told({.wrap = "if torch.cuda.is_available():\n"
                              "    model = nn.DataParallel(model)\n"}),
                "stands under");
}

TEST(ToDdpRemaining, TellsLossesOverPairs) {
  const std::string contrast =
      "def nt_loss(z, t):\n"
      "    z = nn.functional.normalize(z)\n"
      "    return torch.matmul(z, z.T).exp().sum().log() / t\n";
  EXPECT_TOLD(told({.above = contrast, .loss = "nt_loss(model(x), 0.1)"}),
              "compares the samples of a batch");
  EXPECT_TOLD(told({.above = "from losses import SupConLoss\n",
                    .before = "criterion = SupConLoss(0.1)\n",
                    .loss = "criterion(model(x), y)"}),
              "compares the samples of a batch");
  const std::string attention =
      "def attend(q, k):\n"
      "    return torch.matmul(q, k.transpose(1, 2))\n";
  EXPECT_SILENT(told({.above = attention, .loss = "attend(model(x), y).mean()"}), "compares");
  const std::string prototypes =
      "def proto_loss(z, weight):\n"
      "    return torch.matmul(z, weight.t()).mean()\n";
  EXPECT_SILENT(told({.above = prototypes, .loss = "proto_loss(model(x), y)"}), "compares");
}

TEST(ToDdpRemaining, TellsLossesWhoseHelperComparesSamples) {
  const auto with = [](const std::string& given) {
    Files others;
    others["lib/__init__.py"] = "from .triplet import HardLoss\n";
    others["lib/triplet.py"] =
        "import torch\n"
        "from torch import nn\n"
        "def distances(x, y):\n"
        "    dist = torch.pow(x, 2).sum(1, keepdim=True).expand(x.size(0), y.size(0))\n"
        "    dist.addmm_(1, -2, x, y.t())\n"
        "    return dist\n"
        "class HardLoss(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.centers = nn.Parameter(torch.zeros(9, 2))\n"
        "    def forward(self, emb, label):\n"
        "        return distances(emb, " +
        given + ").mean()\n";
    return told({.above = "from lib import HardLoss\n"
                          "class Losses:\n"
                          "    def __init__(self):\n"
                          "        self.hard = HardLoss().cuda()\n"
                          "losses = Losses()\n",
                 .loss = "losses.hard(model(x), y)"},
                others);
  };
  EXPECT_TOLD(with("emb"), "lib/triplet.py:12: this loss compares the samples of a batch");
  EXPECT_SILENT(with("self.centers"), "compares the samples");
}

TEST(ToDdpRemaining, KnowsLossesOverTheBatchByTheirNames) {
  const auto with = [](const std::string& name) {
    return told({.above = "from losses import " + name + "\n",
                 .before = "criterion = " + name + "(0.1)\n",
                 .loss = "criterion(model(x), y)"});
  };
  for (const std::string name : {"MMDLoss", "BatchHardTripletLoss"})
    EXPECT_TOLD(with(name), "compares the samples of a batch");
  // Of three samples each, and of ordered classes.
  for (const std::string name : {"TripletMarginLoss", "CoralLoss"})
    EXPECT_SILENT(with(name), "compares the samples of a batch");
}

TEST(ToDdpRemaining, TellsMeansThatAreDividedAgain) {
  const auto with = [](const std::string& division,
                       const std::string& made = "nn.CrossEntropyLoss()") {
    return told({.above = "class Losses:\n"
                          "    def build(self):\n"
                          "        return self.entropy\n"
                          "    def entropy(self, logit, target):\n"
                          "        n, c = logit.size()\n"
                          "        criterion = " +
                          made +
                          "\n"
                          "        criterion = criterion.cuda()\n"
                          "        loss = criterion(logit, target)\n"
                          "        " +
                          division + "\n" + "        return loss\n",
                 .before = "criterion = Losses().build()\n",
                 .loss = "criterion(model(x), y)"});
  };
  const std::string words =
      "this loss is a mean, and is divided by the size of the batch once more";
  EXPECT_TOLD(with("loss /= n"), words);
  EXPECT_TOLD(with("loss = loss / logit.size(0)"), words);
  EXPECT_SILENT(with("loss /= c"), words);
  EXPECT_SILENT(with("loss /= n", "nn.CrossEntropyLoss(reduction='sum')"), words);
  EXPECT_SILENT(with("self.shown = loss / n"), words);
}

TEST(ToDdpRemaining, TellsSumsOverTheBatch) {
  const std::string summed = "criterion = nn.MSELoss(reduction='sum')\n";
  EXPECT_TOLD(told({.before = summed, .loss = "criterion(model(x), y)"}), "a sum over the batch");
  EXPECT_TOLD(told({.loss = "nn.functional.mse_loss(model(x), y, reduction='sum')"}),
              "a sum over the batch");
  EXPECT_SILENT(told({.before = summed, .loss = "criterion(model(x), y) / x.size(0)"}),
                "a sum over the batch");
  EXPECT_SILENT(told({.before = "criterion = nn.MSELoss()\n", .loss = "criterion(model(x), y)"}),
                "a sum over the batch");
}

TEST(ToDdpRemaining, TellsRanksThatStopAlone) {
  const std::string stop =
      "    score = validate(model)\n"
      "    if score > best:\n"
      "        best = score\n"
      "        patience = 0\n"
      "    else:\n"
      "        patience += 1\n"
      "        if patience == 5:\n"
      "            break\n";
  // The rule's note is told here, though not where it stands among findings.
  EXPECT_TOLD(told({.before = "best, patience = 0, 0\n", .behind = stop}), "DDP015");
  const std::string kept =
      "    loss = trainer.evaluate(patients)\n"
      "    if best > loss:\n"
      "        best = loss\n"
      "        patience = 0\n"
      "    else:\n"
      "        patience += 1\n"
      "        if patience == args.max_patience:\n"
      "            break\n";
  const std::string trained_elsewhere =
      "import torch\n"
      "from torch import nn\n"
      "from torch.utils.data import DataLoader\n"
      "class Trainer:\n"
      "    def __init__(self, model, optimizer):\n"
      "        self.model = model\n"
      "        self.optimizer = optimizer\n"
      "    def run(self, loader):\n"
      "        for x, y in loader:\n"
      "            nn.functional.mse_loss(self.model(x), y).backward()\n"
      "            self.optimizer.step()\n"
      "    def evaluate(self, items):\n"
      "        with torch.no_grad():\n"
      "            return sum(self.model(item).sum().item() for item in items)\n"
      "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
      "trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1))\n"
      "loader = DataLoader(data, batch_size=64, shuffle=True)\n"
      "best, patience = 0, 0\n"
      "for epoch in range(9):\n"
      "    trainer.run(loader)\n";
  EXPECT_TOLD(listed(left_of({{"train.py", trained_elsewhere + kept}})), "DDP015");
  EXPECT_EQ(told({.behind = "    if epoch == 5:\n        break\n"}), "");
  EXPECT_EQ(told({.behind = "    if os.path.exists('stop'):\n        print(epoch)\n"}), "");
}

TEST(ToDdpRemaining, TellsStopsAroundTrainingOutOfSight) {
  const auto with = [](const std::string& call) {
    return listed(left_of({{"train.py",
                            "import torch\n"
                            "from torch import nn\n"
                            "from engine import Trainer\n"
                            "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                            "trainer = Trainer(model)\n"
                            "best, patience = 9, 0\n"
                            "for epoch in range(9):\n"
                            "    " +
                                call +
                                "\n"
                                "    loss = trainer.evaluate(valid)\n"
                                "    if loss < best:\n"
                                "        best, patience = loss, 0\n"
                                "    else:\n"
                                "        patience += 1\n"
                                "    if patience >= 5:\n"
                                "        break\n"}}));
  };
  EXPECT_TOLD(with("trainer.train_epoch(loader)"), "whether training ends here");
  EXPECT_SILENT(with("print(epoch)"), "whether training ends here");
}

TEST(ToDdpRemaining, TellsRatesThatRanksLowerAlone) {
  EXPECT_TOLD(told({.before = "plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\n",
                    .behind = "    plateau.step(validate(model))\n"}),
              "lowers its learning rate");
  EXPECT_SILENT(told({.before = "steps = torch.optim.lr_scheduler.StepLR(optimizer, 3)\n",
                      .behind = "    steps.step()\n"}),
                "lowers its learning rate");
}

TEST(ToDdpRemaining, TellsEvaluationsOnceForAllPlaces) {
  const std::string evaluate =
      "    model.eval()\n"
      "    with torch.no_grad():\n"
      "        for x, y in val_loader:\n"
      "            print(model(x).argmax())\n"
      "    model.train()\n";
  EXPECT_TOLD(
      told({.before = "val_loader = DataLoader(val_data, batch_size=64)\n", .behind = evaluate}),
      "every rank evaluates");
  EXPECT_SILENT(told({}), "every rank evaluates");
}

TEST(ToDdpRemaining, TellsGpusThatAllRanksWouldShare) {
  const std::string option =
      "import argparse\n"
      "parser = argparse.ArgumentParser()\n"
      "parser.add_argument('--gpu', type=int, default=0)\n"
      "args = parser.parse_args()\n";
  EXPECT_TOLD(told({.above = "class Settings:\n    device = 0\nsettings = Settings()\n",
                    .before = "scale = torch.ones(2).to(settings.device)\n"}),
              "names one GPU for all");
  EXPECT_SILENT(told({.above = option + "device = torch.device(args.gpu)\n"}),  // a step, again
                "names one GPU for all");
  EXPECT_SILENT(told({.above = "device = torch.device('cuda')\n"}), "names one GPU for all");
  EXPECT_SILENT(told({.above = "device = torch.device('cuda:0')\n"}),  // a step has changed it
                "names one GPU for all");
}

TEST(ToDdpRemaining, TellsVisibleDevicesOfTheScript) {
  const std::string other = "import settings\n";
  EXPECT_TOLD(
      told({.above = other},
           {{"settings.py", "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = gpus_of_ranks\n"}}),
      "chooses its GPUs itself");
  EXPECT_SILENT(told({.above = other},
                     {{"settings.py", "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'])\n"}}),
                "chooses its GPUs itself");
}

TEST(ToDdpRemaining, DropsWhatIsNotAboutRanks) {
  EXPECT_SILENT(told({.before = "torch.autograd.set_detect_anomaly(True)\n"}), "LAU009");
  EXPECT_SILENT(told({.net = "Net()", .before = "model.cuda()\n"}), "DDP045");
}

TEST(ToDdpRemaining, PutsWhatStopsFirstAndJoinsPlaces) {
  const auto left =
      left_of({{"train.py", Script{.before = "from tensorboardX import SummaryWriter\n"
                                             "a = SummaryWriter('a')\n"
                                             "b = SummaryWriter('b')\n"
                                             "critic = Net().cuda()\n"
                                             "other = torch.optim.Adam(critic.parameters())\n"}
                                .text()}});
  ASSERT_EQ(left.size(), 2U) << listed(left);
  EXPECT_TRUE(says(left[0].text, "without a wrapper")) << listed(left);
  ASSERT_EQ(left[1].also.size(), 1U) << listed(left);
  EXPECT_EQ(left[1].also[0].line, left[1].line + 1);
}

}  // namespace
}  // namespace bench::diagnose
