// What bench diagnose --to-ddp leaves to the author of data and files: for each topic scripts of
// which something is told, and others like them of which nothing is.
#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

// How a script begins whose loaders and loops a test writes itself.
const std::string kImportsAndModel =
    "import torch\n"
    "from torch import nn\n"
    "from torch.utils.data import DataLoader\n"
    "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n";

TEST(ToDdpRemaining, LeavesNothingOfAPlainProgram) { EXPECT_EQ(told({}), ""); }

TEST(ToDdpRemaining, TellsLoadersOfOtherFiles) {
  const std::string other = "from datasets import make\n";
  const auto list = told({.above = other, .loader = "loader = make(64)\n"},
                         {{"datasets.py",
                           "from torch.utils.data import DataLoader\n"
                           "def make(size):\n"
                           "    return DataLoader(read(), batch_size=size, shuffle=True)\n"}});
  EXPECT_SILENT(list, "shared out");  // a step has done it
  EXPECT_TOLD(told({.above = other, .loader = "loader = make(64)\ntest_loader = make(8)\n"},
                   {{"datasets.py",
                     "from torch.utils.data import DataLoader\n"
                     "def make(size):\n"
                     "    return DataLoader(read(), batch_size=size, shuffle=True)\n"}}),
              "datasets.py:3: this training loader is not shared out");
  EXPECT_TOLD(told({.loader = "loader = somewhere.make(64)\n"}), "could not be followed");
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

TEST(ToDdpRemaining, TellsLoopsWithoutALoader) {
  const auto with = [](const std::string& loop) {
    return listed(left_of(
        {{"train.py", kImportsAndModel +
                          "loader = DataLoader(data, batch_size=64, shuffle=True)\n" + loop +
                          "    model(x).sum().backward()\n"
                          "    optimizer.step()\n"}}));
  };
  EXPECT_TOLD(with("for step in range(900):\n    x = draw(64)\n"), "no loader gives this loop");
  EXPECT_TOLD(with("for i in range(0, len(rows), 64):\n    x = rows[i : i + 64]\n"),
              "no loader gives this loop");
  EXPECT_SILENT(with("for x in loader:\n"), "no loader gives");
  EXPECT_SILENT(with("batches = iter(loader)\nfor step in range(9):\n    x = next(batches)\n"),
                "no loader gives");
}

TEST(ToDdpRemaining, TellsTheSeedThatMakesBatchesEqual) {
  const std::string weighted =
      "loader = DataLoader(data, batch_size=64, sampler=WeightedSampler(data))\n";
  EXPECT_TOLD(told({.above = "torch.manual_seed(7)\n", .loader = weighted}), "the same batches");
  EXPECT_SILENT(told({.loader = weighted}), "the same batches");
  EXPECT_SILENT(told({.above = "torch.cuda.manual_seed(7)\n", .loader = weighted}),
                "the same batches");
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
  const std::string plain = "torch.save(model.state_dict(), path)\n";
  // A barrier is right where all ranks come by, and not under a figure of the rank's own.
  EXPECT_SILENT(told({.end = plain + "artifact.add_file(path)\n"}), "rank 0 alone");
  const std::string save = "if score > best:\n    " + plain + "    ";
  EXPECT_TOLD(told({.end = "import shutil\n" + save +
                           "print(score)\n    shutil.copyfile(path, 'best.pt')\n"}),
              "rank 0 alone writes this file");
  EXPECT_TOLD(told({.end = save + "artifact.add_file(path)\n"}), "rank 0 alone writes this file");
  EXPECT_TOLD(told({.end = save + "print(path)\nos.rename(path, 'last.pt')\n"}),
              "rank 0 alone writes this file");
  EXPECT_SILENT(told({.end = save + "print(path)\n"}), "rank 0 alone");
  EXPECT_SILENT(told({.end = save + "line = text.replace(path, '')\n"}), "rank 0 alone");
  EXPECT_SILENT(told({.end = "import shutil\n" + save + "shutil.copyfile(other, 'best.pt')\n"}),
                "rank 0 alone");
}

TEST(ToDdpRemaining, TellsNamesByTheClock) {
  EXPECT_TOLD(told({.before = "import datetime\n"
                              "folder = datetime.datetime.now().strftime('%H%M%S')\n"
                              "os.makedirs(folder, exist_ok=True)\n"}),
              "by its own clock");
  EXPECT_TOLD(
      told({.before = "import argparse\n"
                      "from datetime import datetime\n"
                      "parser = argparse.ArgumentParser()\n"
                      "parser.add_argument('--out_dir', default=datetime.now().isoformat())\n"}),
      "by its own clock");
  EXPECT_SILENT(told({.before = "import time\nstart = time.time()\n"
                                "os.makedirs('out', exist_ok=True)\n",
                      .end = "print(time.time() - start)\n"}),
                "by its own clock");
}

TEST(ToDdpRemaining, TellsPassesWithoutSetEpoch) {
  const std::string loop =
      "    while True:\n"
      "        run(model, loader, optimizer)\n";
  const auto list =
      listed(left_of({{"train.py",
                       "import torch\n"
                       "from torch import nn\n"
                       "from torch.utils.data import DataLoader\n"
                       "def run(model, loader, optimizer):\n"
                       "    for x, y in loader:\n"
                       "        loss = model(x).sum()\n"
                       "        loss.backward()\n"
                       "        optimizer.step()\n"
                       "def main():\n"
                       "    model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                       "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                       "    loader = DataLoader(data, batch_size=64, shuffle=True)\n" +
                           loop + "main()\n"}}));
  EXPECT_TRUE(says(list, "set_epoch")) << list;
  EXPECT_SILENT(told({}), "set_epoch");  // the step calls it
}

TEST(ToDdpRemaining, TellsSetEpochOfEachSampler) {
  const auto with = [](const std::string& second) {
    return listed(
        left_of({{"train.py", kImportsAndModel +
                                  "train_loader = DataLoader(data, batch_size=64, shuffle=True)\n" +
                                  second +
                                  "for epoch in range(9):\n"
                                  "    for x, y in train_loader:\n"
                                  "        a, b = draw(held)\n"
                                  "        (model(x).sum() + model(a).sum()).backward()\n"
                                  "        optimizer.step()\n"}}));
  };
  const std::string words = "train.py:15: nothing calls set_epoch on this sampler";
  EXPECT_TOLD(with("train_loader2 = DataLoader(others, batch_size=64, shuffle=True)\n"
                   "held = [train_loader2]\n"),
              words);
  EXPECT_SILENT(with("train_loader2 = DataLoader(others, batch_size=64)\n"
                     "held = [train_loader2]\n"),
                "set_epoch");
  EXPECT_SILENT(with("val_loader = DataLoader(others, batch_size=64, shuffle=True)\n"
                     "held = [val_loader]\n"),
                "set_epoch");
}

TEST(ToDdpRemaining, LeavesWalksOverStatesAlone) {
  const std::string words = "what makes these batches could not be followed";
  const auto with = [](const std::string& backward) {
    return told({.above = "def derive(states, given):\n"
                          "    for hidden, cell in zip(states, given):\n"
                          "        " +
                          backward + "\n",
                 .end = "        derive(a, b)\n"});
  };
  EXPECT_SILENT(with("hidden.backward(cell)"), words);
  EXPECT_TOLD(with("model(hidden).sum().backward()"), words);
}

TEST(ToDdpRemaining, TellsFoldsWithoutASeed) {
  const std::string import = "from sklearn.model_selection import KFold\n";
  EXPECT_TOLD(told({.above = import + "folds = KFold(5, shuffle=True)\n"}), "nothing seeds NumPy");
  EXPECT_TOLD(told({.above = "import numpy as np\n"
                             "def split(n):\n"
                             "    order = np.random.permutation(n)\n"
                             "    return order[: n // 2 + 1], order[n // 2 :]\n"
                             "parts = split(100)\n"}),
              "nothing seeds NumPy");
  EXPECT_SILENT(told({.above = import + "folds = KFold(5, shuffle=True, random_state=1)\n"}),
                "nothing seeds NumPy");
  EXPECT_SILENT(told({.above = import + "folds = KFold(5)\n"}), "nothing seeds NumPy");
  EXPECT_SILENT(told({.above = import + "import numpy as np\nnp.random.seed(1)\n"
                                        "folds = KFold(5, shuffle=True)\n"}),
                "nothing seeds NumPy");
}

TEST(ToDdpRemaining, TellsDownloadsAndSavesOfOtherFiles) {
  const std::string import = "from other import make\nmake()\n";
  const auto with = [&](const std::string& body) {
    return told({.above = import}, {{"other.py", "import torch, torchvision\n" + body}});
  };
  EXPECT_TOLD(with("def make():\n    return torchvision.datasets.CIFAR10('d', download=True)\n"),
              "every rank downloads");
  EXPECT_TOLD(
      with("def make():\n    download('weights.pt')\n"
           "def download(path):\n    with open(path, 'wb') as f:\n        f.write(read())\n"),
      "every rank downloads");
  EXPECT_SILENT(with("def make():\n    return torchvision.datasets.CIFAR10('d')\n"),
                "every rank downloads");
  EXPECT_SILENT(with("def make():\n    pass\n"
                     "def unused():\n    torchvision.datasets.CIFAR10('d', download=True)\n"),
                "every rank downloads");
}

TEST(ToDdpRemaining, TellsSamplersByWhatTheyDrawFrom) {
  const auto with = [](const std::string& made) {
    return told(
        {.loader =
             "from torch.utils.data import SubsetRandomSampler, WeightedRandomSampler\n" + made});
  };
  EXPECT_TOLD(with("sampler = None\nif weights:\n    sampler = WeightedRandomSampler(weights, 99)\n"
                   "loader = DataLoader(data, batch_size=64, sampler=sampler)\n"),
              "a sampler of its own in some runs, and none in others");
  EXPECT_TOLD(with("sampler = SubsetRandomSampler(indices[:800])\n"
                   "loader = DataLoader(data, batch_size=64, sampler=sampler)\n"),
              "draws from a list of indices");
  const auto own = with("loader = DataLoader(data, batch_sampler=PairSampler(labels, 99))\n");
  EXPECT_TOLD(own, "a batch sampler of its own");
  EXPECT_SILENT(own, "a sampler of its own that knows no ranks");
}

TEST(ToDdpRemaining, TellsTheClassOfALoaderThatIsPickedByAName) {
  const std::string base =
      "from torch.utils.data import DataLoader\n"
      "class BaseLoader(DataLoader):\n"
      "    def __init__(self, data, size):\n"
      "        self.sampler = split(data)\n"
      "        super().__init__(data, batch_size=size, sampler=self.sampler)\n"
      "class Digits(BaseLoader):\n"
      "    def __init__(self, size):\n"
      "        super().__init__(read(), size)\n";
  EXPECT_TOLD(told({.above = "import loaders\n", .loader = "loader = getattr(loaders, name)(64)\n"},
                   {{"loaders.py", base}}),
              "loaders.py:5: the class of this DataLoader is picked by a name");
}

// What a rank keeps of its share, batch by batch, is what its training reads back.
TEST(ToDdpRemaining, LeavesWhatIsPairedWithBatchesByTheirNumber) {
  const std::string words = "goes over the loader of the training";
  const auto with = [](const std::string& shuffle, const std::string& use) {
    return told({.loader = "loader = DataLoader(data, batch_size=64, shuffle=" + shuffle + ")\n",
                 .before = "known = []\nfor x, y in loader:\n    known.append(teacher(x))\n",
                 .batches = "enumerate(loader)",
                 .loss = "nn.functional.mse_loss(model(y), " + use + ")"});
  };
  EXPECT_SILENT(with("False", "known[x]"), words);
  EXPECT_TOLD(with("True", "known[x]"), words);
  EXPECT_TOLD(with("False", "known[0]"), words);
}

TEST(ToDdpRemaining, TellsLoadersOfRunsThatEvaluateBesideTraining) {
  const auto with = [](const std::string& flag) {
    return told({.above = "if args." + flag +
                          ":\n"
                          "    train_loader = DataLoader(data, 64, sampler=Weighted(w, 9))\n"
                          "else:\n"
                          "    train_loader = Other(data)\n",
                 .loader = "loader = train_loader\n"});
  };
  EXPECT_TOLD(with("evaluate_during_training"), "knows no ranks");
  EXPECT_SILENT(with("evaluate"), "knows no ranks");
}

TEST(ToDdpRemaining, LeavesLoadersOfTheBranchForTests) {
  const auto list = told({.above = "def make(data, is_test=False):\n"
                                   "    if not is_test:\n"
                                   "        out = DataLoader(data, batch_size=64, shuffle=True)\n"
                                   "    else:\n"
                                   "        out = DataLoader(data, batch_size=1, shuffle=False)\n"
                                   "    return out\n",
                          .loader = "loader = make(data)\ndev_loader = make(dev, is_test=True)\n"});
  EXPECT_TOLD(list, "this training loader is not shared out");
  EXPECT_SILENT(list, "the batch size of this loader is one");
}

// for phase in ["train", "val"]: a step shares out the data of the training alone.
TEST(ToDdpRemaining, TellsThePhaseThatEvaluates) {
  const auto with = [](const std::string& phases) {
    return listed(
        left_of({{"train.py", kImportsAndModel + "sets = {x: read(x) for x in " + phases +
                                  "}\n"
                                  "loaders = {x: DataLoader(sets[x], batch_size=64) for x in " +
                                  phases +
                                  "}\n"
                                  "sizes = {x: len(sets[x]) for x in " +
                                  phases +
                                  "}\n"
                                  "for epoch in range(9):\n"
                                  "    for phase in " +
                                  phases +
                                  ":\n"
                                  "        total = 0.0\n"
                                  "        for x, y in loaders[phase]:\n"
                                  "            loss = nn.functional.cross_entropy(model(x), y)\n"
                                  "            if phase == 'train':\n"
                                  "                optimizer.zero_grad()\n"
                                  "                loss.backward()\n"
                                  "                optimizer.step()\n"
                                  "            total += loss.item() * x.size(0)\n"
                                  "        print(phase, total / sizes[phase])\n"}}));
  };
  const auto list = with("['train', 'val']");
  EXPECT_TOLD(list, "where this loop evaluates, every rank goes over all of the data");
  EXPECT_TOLD(list, "'total' is that of one rank's part of the data");
}

// Beside a loader that is shared out, of the evaluation of what is trained.
TEST(ToDdpRemaining, TellsBatchesMadeByHandBesideALoader) {
  const std::string words = "no loader gives this loop its batches";
  const auto with = [](const std::string& draw) {
    return told({.above = "import numpy as np\n",
                 .end = "for step in range(99):\n"
                        "    x = " +
                        draw +
                        "\n"
                        "    optimizer.zero_grad()\n"
                        "    model(x).sum().backward()\n"
                        "    optimizer.step()\n"});
  };
  EXPECT_TOLD(with("images[np.random.permutation(ids)[:64]]"), words);
  EXPECT_SILENT(with("noise"), words);
}

// while step < 99: x, y = batches.next(), of an iterator that begins anew in a method of its own.
TEST(ToDdpRemaining, TellsEpochsOfLoopsThatCountSteps) {
  const auto with = [](const std::string& shuffle) {
    return listed(left_of({{"data.py",
                            "from torch.utils.data import DataLoader\n"
                            "class Prefetch:\n"
                            "    def __init__(self, loader):\n"
                            "        self.loader = loader\n"
                            "        self.iter = iter(self.loader)\n"
                            "        self.preload()\n"
                            "    def preload(self):\n"
                            "        try:\n"
                            "            batch = next(self.iter)\n"
                            "        except StopIteration:\n"
                            "            self.reset()\n"
                            "            batch = next(self.iter)\n"
                            "        self.batch = batch\n"
                            "    def reset(self):\n"
                            "        self.iter = iter(self.loader)\n"
                            "    def next(self):\n"
                            "        batch = self.batch\n"
                            "        self.preload()\n"
                            "        return batch\n"
                            "def make(sets):\n"
                            "    loaders = {x: DataLoader(sets[x], batch_size=64, shuffle=" +
                                shuffle +
                                ")\n"
                                "               for x in ['train', 'val']}\n"
                                "    return loaders['train'], loaders['val']\n"},
                           {"train.py",
                            "import torch\n"
                            "from torch import nn\n"
                            "from data import Prefetch, make\n"
                            "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                            "loader, val_loader = make(read())\n"
                            "batches = Prefetch(loader)\n"
                            "step = 0\n"
                            "while step < 99:\n"
                            "    x, y = batches.next()\n"
                            "    loss = nn.functional.cross_entropy(model(x), y)\n"
                            "    optimizer.zero_grad()\n"
                            "    loss.backward()\n"
                            "    optimizer.step()\n"
                            "    step += 1\n"}}));
  };
  EXPECT_TOLD(with("True"), "data.py:23: nothing calls set_epoch on this sampler");
  EXPECT_SILENT(with("False"), "set_epoch on this sampler");
}

TEST(ToDdpRemaining, TellsEvaluationOfIteratorsDrawnByHand) {
  const auto with = [](const std::string& name, const std::string& eval) {
    return told({.above = "def " + name + "(model, batches):\n" + eval +
                          "    for _ in range(steps):\n"
                          "        x, y = next(batches)\n"
                          "        score(model(x), y)\n",
                 .behind = "    " + name + "(model, iterate(val))\n"});
  };
  EXPECT_TOLD(with("evaluate", "    model.eval()\n"), "every rank evaluates all of this data");
  EXPECT_SILENT(with("warm_up", ""), "every rank evaluates all of this data");
}

}  // namespace
}  // namespace bench::diagnose
