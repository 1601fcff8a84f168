// What bench diagnose --to-ddp leaves to the author: for each topic scripts of which something is
// told, and others like them of which nothing is.
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/to_ddp/rewrite.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace bench::diagnose {
namespace {

using Files = std::map<std::string, std::string>;

// One program, of which a test says what differs from the others.
struct Script {
  std::string above = "";  // the model
  std::string net = "Net().cuda()";
  std::string wrap = "model = nn.DataParallel(model)\n";
  std::string loader = "loader = DataLoader(data, batch_size=64, shuffle=True)\n";
  std::string before = "";  // the loop over epochs
  std::string batches = "loader";
  std::string loss = "nn.functional.cross_entropy(model(x), y)";
  std::string behind = "";  // the loop over batches, in an epoch
  std::string end = "";

  std::string text() const {
    return "import os\n"
           "import torch\n"
           "from torch import nn\n"
           "from torch.utils.data import DataLoader\n"
           "class Net(nn.Module):\n"
           "    def __init__(self):\n"
           "        super().__init__()\n"
           "        self.fc = nn.Linear(8, 2)\n"
           "    def forward(self, x):\n"
           "        return self.fc(x)\n" +
           above + "model = " + net + "\n" + wrap +
           "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n" + loader + before +
           "for epoch in range(9):\n"
           "    for x, y in " +
           batches +
           ":\n"
           "        loss = " +
           loss +
           "\n"
           "        optimizer.zero_grad()\n"
           "        loss.backward()\n"
           "        optimizer.step()\n" +
           behind + end;
  }
};

std::vector<Remaining> left_of(Files files) {
  std::vector<Remaining> out;
  const DiagnoseOptions options;
  for_each_program_of_texts(files, "train.py", options, [&](const Program& program) {
    const Rewrite made =
        rewrite_to_ddp(program, [&](const Files& texts, const RewrittenVisit& visit) {
          Files changed = files;
          for (const auto& [file, text] : texts) changed[file] = text;
          const auto found = diagnose_texts(changed, "train.py", options);
          for_each_program_of_texts(changed, "train.py", options,
                                    [&](const Program& rewritten) { visit(rewritten, found); });
        });
    EXPECT_FALSE(made.steps.empty()) << files.at("train.py");
    out = made.left;
  });
  return out;
}

std::string listed(const std::vector<Remaining>& left) {
  std::string out;
  for (const Remaining& each : left)
    out += each.file + ":" + std::to_string(each.line) + ": " + each.text + "\n";
  return out;
}

std::string told(const Script& script, Files others = {}) {
  others["train.py"] = script.text();
  return listed(left_of(std::move(others)));
}

bool says(const std::string& list, std::string_view words) {
  return list.find(words) != std::string::npos;
}

#define EXPECT_TOLD(list, words) EXPECT_TRUE(says(list, words)) << list
#define EXPECT_SILENT(list, words) EXPECT_FALSE(says(list, words)) << list

TEST(ToDdpRemaining, LeavesNothingOfAPlainProgram) { EXPECT_EQ(told({}), ""); }

TEST(ToDdpRemaining, TellsLoadersOfOtherFiles) {
  const std::string other = "from datasets import make\n";
  const auto list = told({.above = other, .loader = "loader = make(64)\n"},
                         {{"datasets.py",
                           "from torch.utils.data import DataLoader\n"
                           "def make(size):\n"
                           "    return DataLoader(read(), batch_size=size, shuffle=True)\n"}});
  EXPECT_TOLD(list, "datasets.py:3: this training loader is not shared out");
  EXPECT_TOLD(told({.loader = "loader = somewhere.make(64)\n"}), "not in sight");
  EXPECT_SILENT(told({}), "shared out");
  EXPECT_SILENT(
      told({.above = other, .loader = "loader = make(64)\n"},
           {{"datasets.py",
             "from torch.utils.data import DataLoader, DistributedSampler\n"
             "def make(size):\n"
             "    data = read()\n"
             "    return DataLoader(data, batch_size=size, sampler=DistributedSampler(data))\n"}}),
      "shared out");
}

TEST(ToDdpRemaining, TellsOwnSamplersAndDataClasses) {
  EXPECT_TOLD(told({.loader = "sampler = torch.utils.data.WeightedRandomSampler(w, 99)\n"
                              "loader = DataLoader(data, batch_size=64, sampler=sampler)\n"}),
              "a sampler of its own that knows no ranks");
  const std::string cls =
      "class Batches:\n"
      "    def __init__(self, items):\n"
      "        self.items = items\n"
      "    def __iter__(self):\n"
      "        return iter(self.items)\n";
  EXPECT_TOLD(told({.above = cls, .loader = "loader = Batches(items)\n"}),
              "a class of the project");
  // A list of tensors is no supply that a sampler could share.
  EXPECT_SILENT(told({.loader = "loader = [(torch.rand(4, 8), torch.rand(4))]\n"}), "all the data");
}

TEST(ToDdpRemaining, TellsTheSeedThatMakesBatchesEqual) {
  const std::string weighted =
      "loader = DataLoader(data, batch_size=64, sampler=WeightedSampler(data))\n";
  EXPECT_TOLD(told({.above = "torch.manual_seed(7)\n", .loader = weighted}), "the same batches");
  EXPECT_SILENT(told({.loader = weighted}), "the same batches");
}

TEST(ToDdpRemaining, TellsBatchSizesOfAllGpus) {
  EXPECT_TOLD(told({.loader = "size = 32 * torch.cuda.device_count()\n"
                              "loader = DataLoader(data, batch_size=size, sampler=Own(data))\n"}),
              "batch size of all GPUs");
  EXPECT_TOLD(told({.loader = "loader = DataLoader(data, 32 * num_gpus, sampler=Own(data))\n"}),
              "batch size of all GPUs");
  EXPECT_SILENT(told({.loader = "size = 32 * 4\n"
                                "loader = DataLoader(data, batch_size=size, sampler=Own(data))\n"}),
                "batch size of all GPUs");
  // A step has divided it by the number of ranks.
  EXPECT_SILENT(told({.loader = "loader = DataLoader(data, 32 * num_gpus, shuffle=True)\n"}),
                "batch size of all GPUs");
}

TEST(ToDdpRemaining, TellsSummaryWritersAndTrackers) {
  EXPECT_TOLD(told({.before = "from tensorboardX import SummaryWriter\n"
                              "writer = SummaryWriter('runs')\n"}),
              "a run or a log of its own");
  EXPECT_TOLD(told({.before = "import wandb\nwandb.init(project='p')\n"}),
              "a run or a log of its own");
  EXPECT_SILENT(told({.before = "import wandb\n"
                                "if int(os.environ['RANK']) == 0:\n"
                                "    wandb.init(project='p')\n"}),
                "a run or a log of its own");
  EXPECT_SILENT(told({.above = "import wandb\n"
                               "def never_called():\n"
                               "    wandb.init(project='p')\n"}),
                "a run or a log of its own");
}

TEST(ToDdpRemaining, TellsFilesThatEveryRankWrites) {
  EXPECT_TOLD(told({.end = "with open('log.txt', 'w') as f:\n    f.write('done')\n"}),
              "every rank writes this file");
  EXPECT_TOLD(told({.end = "import matplotlib.pyplot as plt\nplt.savefig('loss.png')\n"}),
              "every rank writes this file");
  EXPECT_SILENT(told({.end = "with open('log.txt') as f:\n    print(f.read())\n"}),
                "every rank writes");
  EXPECT_SILENT(told({.end = "rank = int(os.environ['RANK'])\n"
                             "with open(f'log_{rank}.txt', 'w') as f:\n    f.write('done')\n"}),
                "every rank writes");
  EXPECT_SILENT(told({.end = "import io\n"
                             "import matplotlib.pyplot as plt\n"
                             "buffer = io.BytesIO()\nplt.savefig(buffer)\n"}),
                "every rank writes");
}

TEST(ToDdpRemaining, TellsWhoUsesWhatRankZeroSaves) {
  const std::string save = "torch.save(model.state_dict(), path)\n";
  EXPECT_TOLD(told({.end = "import shutil\n" + save + "shutil.copyfile(path, 'best.pt')\n"}),
              "rank 0 alone writes this file");
  EXPECT_TOLD(told({.end = save + "artifact.add_file(path)\n"}), "rank 0 alone writes this file");
  EXPECT_SILENT(told({.end = save + "print(path)\n"}), "rank 0 alone");
  EXPECT_SILENT(told({.end = "import shutil\n" + save + "shutil.copyfile(other, 'best.pt')\n"}),
                "rank 0 alone");
}

TEST(ToDdpRemaining, TellsNamesByTheClock) {
  EXPECT_TOLD(told({.before = "import datetime\n"
                              "folder = datetime.datetime.now().strftime('%H%M%S')\n"
                              "os.makedirs(folder, exist_ok=True)\n"}),
              "by its own clock");
  EXPECT_SILENT(told({.before = "import time\nstart = time.time()\n"
                                "os.makedirs('out', exist_ok=True)\n",
                      .end = "print(time.time() - start)\n"}),
                "by its own clock");
}

TEST(ToDdpRemaining, TellsPassesWithoutSetEpoch) {
  const std::string loop =
      "    while True:\n"
      "        for x, y in loader:\n"
      "            loss = model(x).sum()\n"
      "            loss.backward()\n"
      "            optimizer.step()\n";
  const auto list =
      listed(left_of({{"train.py",
                       "import torch\n"
                       "from torch import nn\n"
                       "from torch.utils.data import DataLoader\n"
                       "def main():\n"
                       "    model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                       "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                       "    loader = DataLoader(data, batch_size=64, shuffle=True)\n" +
                           loop + "main()\n"}}));
  EXPECT_TRUE(says(list, "set_epoch")) << list;
  EXPECT_SILENT(told({}), "set_epoch");  // the step calls it
}

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
  EXPECT_TOLD(told({.net = "somewhere.build().cuda()"}), "the model's code is not in sight");
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

TEST(ToDdpRemaining, TellsPassesThatARoundRepeats) {
  const std::string norm =
      "class Norm(nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.bn = nn.BatchNorm1d(8)\n"
      "    def forward(self, x):\n"
      "        return self.bn(x)\n"
      "def total(model, parts):\n"
      "    out = []\n"
      "    for part in parts:\n"
      "        out.append(model(part))\n"
      "    return sum(out)\n";
  EXPECT_TOLD(told({.above = norm, .net = "Norm().cuda()", .loss = "total(model, x)"}),
              "runs several times before one backward");
  EXPECT_SILENT(told({.above = norm, .net = "Net().cuda()", .loss = "total(model, x)"}),
                "runs several times");
  EXPECT_SILENT(told({.above = norm, .net = "Norm().cuda()", .loss = "model(x).mean()"}),
                "runs several times");
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
  EXPECT_TOLD(told({.before = "patch_replication_callback(model)\n"}), "takes a DataParallel");
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
  EXPECT_TOLD(told({.wrap = "if args.multi_gpu:\n    model = nn.DataParallel(model)\n"}),
              "stands under `args.multi_gpu`");
  EXPECT_TOLD(told({.wrap = "if len(gpu_ids) > 1:\n    model = nn.DataParallel(model)\n"}),
              "stands under `len(gpu_ids) > 1`");
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
