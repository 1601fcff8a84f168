// Which programs bench diagnose --to-ddp leaves as they are, and what it says of them.

#include <gtest/gtest.h>

#include "tests/rules/rewritten.hpp"

namespace bench::diagnose {
namespace {

using Files = RewrittenFiles;

constexpr const char* kImports =
    "import torch\n"
    "import torch.nn as nn\n"
    "from torch.utils.data import DataLoader\n"
    "from data import Images\n"
    "from net import Net\n";

constexpr const char* kLoop =
    "def fit(model, loader, optimizer):\n"
    "    for x, y in loader:\n"
    "        loss = nn.functional.cross_entropy(model(x), y)\n"
    "        loss.backward()\n"
    "        optimizer.step()\n";

constexpr const char* kTrains =
    "model = nn.DataParallel(Net().cuda())\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    "fit(model, DataLoader(Images(), batch_size=64), optimizer)\n";

std::string script(const std::string& text) { return kImports + text; }

std::string refusal(const Files& files, const std::string& name = "train.py") {
  const Rewrite made = rewritten(files, name);
  EXPECT_EQ(made.refusal.empty(), !made.steps.empty()) << made.refusal;
  return made.refusal;
}

std::string refusal(const std::string& text) { return refusal(Files{{"train.py", text}}); }

// --- scripts that train nothing

TEST(ToDdpRefusal, LeavesAnEvaluationAlone) {
  const std::string said =
      refusal(script("model = nn.DataParallel(Net().cuda())\n"
                     "model.eval()\n"
                     "with torch.no_grad():\n"
                     "    for x, y in DataLoader(Images(), batch_size=64):\n"
                     "        print((model(x).argmax(1) == y).sum())\n"));
  EXPECT_TRUE(said.starts_with("evaluates only: DataParallel (line 6) may stay")) << said;
}

TEST(ToDdpRefusal, LeavesTheTrainingOfAHelperThatIsNotCalledOutOfIt) {
  const std::string said =
      refusal({{"train.py", script("from loop import fit, score\n"
                                   "def main():\n"
                                   "    model = nn.DataParallel(Net().cuda())\n"
                                   "    score(model, DataLoader(Images()))\n"
                                   "if __name__ == '__main__':\n"
                                   "    main()\n")},
               {"loop.py", "import torch\nimport torch.nn as nn\n" + std::string(kLoop) +
                               "@torch.no_grad()\n"
                               "def score(model, loader):\n"
                               "    for x, y in loader:\n"
                               "        print(model(x))\n"}});
  EXPECT_TRUE(said.starts_with("evaluates only")) << said;
}

// An attack takes gradients of the input, and steps no optimizer.
TEST(ToDdpRefusal, LeavesAnAttackOnAFrozenModelAlone) {
  const std::string said =
      refusal(script("model = nn.DataParallel(Net().cuda())\n"
                     "model.eval()\n"
                     "for x, y in DataLoader(Images()):\n"
                     "    delta = torch.zeros_like(x, requires_grad=True)\n"
                     "    nn.functional.cross_entropy(model(x + delta), y).backward()\n"
                     "    print(model(x + 0.01 * delta.grad.sign()))\n"));
  EXPECT_TRUE(said.starts_with("evaluates only")) << said;
}

// The network is frozen, and only a head above it has an optimizer; the other way round it trains.
TEST(ToDdpRefusal, LeavesAFrozenNetworkBelowATrainedHeadAlone) {
  const auto text = [](const std::string& trained) {
    return script(
        "model = nn.DataParallel(Net().cuda())\n"
        "head = nn.Linear(8, 10).cuda()\n"
        "model.eval()\n"
        "optimizer = torch.optim.SGD(" +
        trained +
        ".parameters(), lr=0.1)\n"
        "for x, y in DataLoader(Images(), batch_size=64):\n"
        "    nn.functional.cross_entropy(head(model(x)), y).backward()\n"
        "    optimizer.step()\n");
  };
  EXPECT_TRUE(refusal(text("head")).starts_with("evaluates only"));
  EXPECT_EQ(refusal(text("model")), "");
}

// A meter steps, and layers have names of training.
TEST(ToDdpRefusal, TellsAMeterFromAnOptimizer) {
  const std::string said =
      refusal({{"train.py", script("from meters import Meter\n"
                                   "model = nn.DataParallel(Net().cuda())\n"
                                   "model.eval()\n"
                                   "meter = Meter()\n"
                                   "for x, y in DataLoader(Images()):\n"
                                   "    meter.step(model(x))\n")},
               {"meters.py", "class Meter:\n    def step(self, x):\n        self.x = x\n"},
               {"data.py", ""},
               {"net.py",
                "import torch.nn as nn\n"
                "class Net(nn.Module):\n"
                "    def __init__(self):\n"
                "        super(Net, self).__init__()\n"
                "        self.update_block = nn.Linear(2, 2)\n"
                "    def train(self, mode=True):\n"
                "        super(Net, self).train(mode)\n"
                "    def forward(self, x):\n"
                "        return self.update_block(x)\n"}});
  EXPECT_TRUE(said.starts_with("evaluates only")) << said;
}

// test() of a class that has an optimize() as well.
TEST(ToDdpRefusal, LeavesAnObjectThatOnlyTestsAlone) {
  const std::string said =
      refusal({{"train.py", script("from work import Work\n"
                                   "work = Work(nn.DataParallel(Net().cuda()))\n"
                                   "work.test(DataLoader(Images()))\n")},
               {"work.py",
                "import torch\n"
                "class Work:\n"
                "    def __init__(self, model):\n"
                "        self.model = model\n"
                "        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                "    def optimize(self, x):\n"
                "        self.model(x).mean().backward()\n"
                "        self.optimizer.step()\n"
                "    def test(self, loader):\n"
                "        with torch.no_grad():\n"
                "            for x in loader:\n"
                "                print(self.model(x))\n"}});
  EXPECT_TRUE(said.starts_with("evaluates only")) << said;
}

TEST(ToDdpRefusal, RewritesTrainingThatEvaluatesInBetween) {
  EXPECT_EQ(refusal(script(std::string(kLoop) + kTrains +
                           "model.eval()\n"
                           "with torch.no_grad():\n"
                           "    print(model(torch.ones(1)))\n")),
            "");
}

TEST(ToDdpRefusal, RewritesWhereTrainingMayLieOutOfSight) {
  const char* const kUnseen[] = {
      "from engine import train_one_epoch\n"
      "model.train()\n"
      "for epoch in range(9):\n"
      "    train_one_epoch(model, loader)\n",
      "from solver import Solver\n"
      "solver = Solver(model, loader)\n"
      "solver.run()\n",
      "from models import make\n"
      "work = make(model)\n"
      "for x in loader:\n"
      "    work.optimize_parameters(x)\n",
      "from lib import Trainer\n"
      "trainer = Trainer(model)\n"
      "trainer.train()\n",
      "from core import run\n"
      "run(model, loader)\n",
      "from lib import loss_fn\n"
      "loss_fn(model, optimizer).step()\n"};
  for (const char* const unseen : kUnseen)
    EXPECT_EQ(refusal(script("model = nn.DataParallel(Net().cuda())\n"
                             "loader = DataLoader(Images(), batch_size=64)\n" +
                             std::string(unseen) +
                             "model.eval()\n"
                             "with torch.no_grad():\n"
                             "    print(model(torch.ones(1)))\n")),
              "")
        << unseen;
}

// A class that is found by its name has the methods that its objects are asked for.
TEST(ToDdpRefusal, RewritesWhereAClassIsFoundByItsName) {
  EXPECT_EQ(refusal({{"train.py", script("import importlib\n"
                                         "import work\n"
                                         "kind = getattr(importlib.import_module('work'), name)\n"
                                         "model = nn.DataParallel(Net().cuda())\n"
                                         "task = kind(model)\n"
                                         "task.one_round()\n"
                                         "model.eval()\n")},
                     {"work.py",
                      "class Work:\n"
                      "    def one_round(self):\n"
                      "        self.model(self.x).mean().backward()\n"
                      "        self.optimizer.step()\n"}}),
            "");
}

// --- files that others import

TEST(ToDdpRefusal, NamesTheScriptThatRunsAModule) {
  const std::string loop = script(std::string(kLoop) +
                                  "def start(args):\n"
                                  "    model = nn.DataParallel(Net().cuda())\n"
                                  "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                                  "    fit(model, DataLoader(Images()), optimizer)\n");
  EXPECT_EQ(refusal({{"loop.py", loop},
                     {"run_train.py",
                      "from loop import start\nif __name__ == '__main__':\n    start(None)\n"},
                     {"other.py", "if __name__ == '__main__':\n    print()\n"}},
                    "loop.py"),
            "a module that others import: give the script that starts the training: run_train.py");
}

TEST(ToDdpRefusal, FindsTheScriptThroughAPackage) {
  EXPECT_EQ(refusal({{"lib/work.py",
                      "import torch\n"
                      "class Work(Base):\n"
                      "    def build(self):\n"
                      "        self.model = torch.nn.DataParallel(self.model)\n"},
                     {"lib/__init__.py", "from .work import (\n    Work,\n)\n"},
                     {"main.py",
                      "from lib import Work\nif __name__ == '__main__':\n    Work().build()\n"}},
                    "lib/work.py"),
            "a module that others import: give the script that starts the training: main.py");
}

// Scripts that evaluate start no training, and one without a guard is a script, too.
TEST(ToDdpRefusal, NamesScriptsThatTrain) {
  const std::string use = "from lib import Work\n";
  EXPECT_EQ(refusal({{"lib.py",
                      "import torch\n"
                      "class Work(Base):\n"
                      "    def build(self):\n"
                      "        self.model = torch.nn.DataParallel(self.model)\n"},
                     {"evaluate.py", use + "if __name__ == '__main__':\n    Work()\n"},
                     {"begin.py", use + "if __name__ == '__main__':\n    Work()\n"},
                     {"train_it.py", use + "args = parser.parse_args()\nWork()\n"},
                     {"paths.py", use + "import sys\nsys.path.append('..')\n"}},
                    "lib.py"),
            "a module that others import: give the script that starts the training: train_it.py, "
            "begin.py");
}

TEST(ToDdpRefusal, TakesAModuleThatTriesItselfOutForOne) {
  const std::string net =
      "import torch\n"
      "class Net(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.body = torch.nn.DataParallel(torch.nn.Linear(2, 2))\n"
      "    def forward(self, x):\n"
      "        return self.body(x)\n"
      "if __name__ == '__main__':\n"
      "    print(Net()(torch.ones(2, 2)).shape)\n";
  const std::string run =
      "from net import Net\n"
      "if __name__ == '__main__':\n"
      "    work(Net())\n";
  EXPECT_EQ(refusal({{"net.py", net}, {"run.py", run}}, "net.py"),
            "a module that others import: give the script that starts the training: run.py");
  EXPECT_EQ(refusal({{"net.py", net}}, "net.py"), "");
}

TEST(ToDdpRefusal, GivesTheRuleWhereNoScriptIsFound) {
  EXPECT_EQ(refusal("import torch\n"
                    "import sys\n"
                    "sys.path.append('..')\n"
                    "@TRAINERS.register()\n"
                    "class Work(Base):\n"
                    "    def build(self):\n"
                    "        self.model = torch.nn.DataParallel(self.model)\n"),
            "a module that others import: give the script that starts the training");
}

TEST(ToDdpRefusal, RewritesScriptsThatStartInOtherWays) {
  const std::string body = std::string(kLoop) +
                           "def work(args=None):\n"
                           "    model = nn.DataParallel(Net().cuda())\n"
                           "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                           "    fit(model, DataLoader(Images(), batch_size=64), optimizer)\n";
  for (const char* const start :
       {"work()\n", "import fire\nfire.Fire(work)\n", "import fire\nfire.Fire()\n",
        "import sys\nsys.exit(work())\n", "if __name__ == '__main__':\n    work()\n",
        "def main():\n    work()\n", "for seed in range(3):\n    work(seed)\n"})
    EXPECT_EQ(refusal(script(body + start)), "") << start;
  EXPECT_EQ(refusal(script("@ex.automain\n" + body.substr(body.find("def work")) + kLoop)), "");
}

// --- what has DDP already

constexpr const char* kDist =
    "import torch.distributed as dist\n"
    "def setup(args):\n"
    "    dist.init_process_group('nccl')\n";

TEST(ToDdpRefusal, NamesTheOptionThatChoosesTheMode) {
  const std::string said = refusal(
      {{"train.py", script("import argparse\n"
                           "from dist_utils import setup\n" +
                           std::string(kLoop) +
                           "parser = argparse.ArgumentParser()\n"
                           "parser.add_argument('-d', '--distributed', action='store_true')\n"
                           "args = parser.parse_args()\n"
                           "if args.distributed:\n"
                           "    setup(args)\n"
                           "else:\n"
                           "    model = nn.DataParallel(Net())\n"
                           "    fit(model, loader, optimizer)\n")},
       {"dist_utils.py", kDist}});
  EXPECT_EQ(said,
            "joins a process group already (dist_utils.py:3): start it with torchrun, in the mode "
            "that --distributed chooses");
}

TEST(ToDdpRefusal, LeavesRanksToAScriptThatStartsThem) {
  const std::string said =
      refusal(script("import torch.distributed as dist\n"
                     "import torch.multiprocessing as mp\n"
                     "def work(rank, args):\n"
                     "    dist.init_process_group('nccl', rank=rank, world_size=4)\n"
                     "    model = nn.parallel.DistributedDataParallel(Net())\n"
                     "def main(args):\n"
                     "    if args.multiprocessing_distributed:\n"
                     "        mp.spawn(work, nprocs=4, args=(args,))\n"
                     "    else:\n"
                     "        model = nn.DataParallel(Net())\n"
                     "if __name__ == '__main__':\n"
                     "    main(parse())\n"));
  EXPECT_EQ(said,
            "joins a process group already (line 9): start it with python, as it starts its ranks "
            "itself, where `args.multiprocessing_distributed` holds");
}

// Whoever takes the comment away has the mode.
TEST(ToDdpRefusal, LeavesAModeWhoseCallIsCommentedOut) {
  const std::string said =
      refusal(script("import torch.distributed as dist\n"
                     "def main(args):\n"
                     "    if args.distributed:\n"
                     "        dist.init_process_group('nccl')\n"
                     "        model = nn.parallel.DistributedDataParallel(Net())\n"
                     "    else:\n"
                     "        model = nn.DataParallel(Net())\n"
                     "if __name__ == '__main__':\n"
                     "    # main(parse())\n"
                     "    print('see the readme')\n"));
  EXPECT_EQ(said,
            "joins a process group already (line 9): start it with torchrun, where "
            "`args.distributed` holds");
}

TEST(ToDdpRefusal, TellsOfAModeThatNeverJoins) {
  const std::string said =
      refusal(script(std::string(kLoop) + "if cfg['distributed']:\n"
                                          "    model = nn.parallel.DistributedDataParallel(Net())\n"
                                          "else:\n"
                                          "    model = nn.DataParallel(Net())\n"
                                          "fit(model, loader, optimizer)\n"));
  EXPECT_TRUE(
      said.starts_with("wraps in DistributedDataParallel already (line 12), and joins no "
                       "process group: call torch.distributed.init_process_group()"))
      << said;
}

TEST(ToDdpRefusal, RewritesWhereTheCallOfAHelperIsNotReached) {
  const Files helpers = {{"dist_utils.py", std::string(kDist) + "def average(x):\n    return x\n"}};
  const std::string unused = "from dist_utils import average, setup\n";
  for (const std::string& script_text :
       {script(unused + kLoop + kTrains), script(unused + kLoop + kTrains + "print(average(1))\n"),
        script("import dist_utils\n" + std::string(kLoop) + kTrains + "dist_utils.average(1)\n")}) {
    Files files = helpers;
    files["train.py"] = script_text;
    EXPECT_EQ(refusal(files), "") << script_text;
  }
}

// A variable and a method of the name are not the function of the helper.
TEST(ToDdpRefusal, RewritesBesideAnotherThingOfTheName) {
  const Files helpers = {{"dist_utils.py", std::string(kDist) + "def average(x):\n    return x\n"}};
  for (const char* const used : {"setup = 3\nprint(setup)\n", "model.setup(1)\n"}) {
    Files files = helpers;
    files["train.py"] =
        script("from dist_utils import average\n" + std::string(kLoop) + kTrains + used);
    EXPECT_EQ(refusal(files), "") << used;
  }
}

TEST(ToDdpRefusal, FindsAModeBehindEachImport) {
  const char* const kUses[] = {"from dist_utils import *\nsetup(1)\n",
                               "import dist_utils\ndist_utils.setup(1)\n",
                               "from dist_utils import setup as begin\nbegin(1)\n",
                               "from dist_utils import setup\natexit.register(setup, 1)\n",
                               "from dist_utils import setup as begin\natexit.register(begin)\n"};
  for (const char* const use : kUses)
    EXPECT_TRUE(refusal({{"dist_utils.py", kDist},
                         {"train.py", script(use + std::string(kLoop) + kTrains)}})
                    .starts_with("joins a process group already (dist_utils.py:3)"))
        << use;
}

// The guard of a file that is only imported does not run.
TEST(ToDdpRefusal, RewritesBesideTheGuardOfAnotherScript) {
  EXPECT_EQ(refusal({{"train.py", script("from loop import fit\n" + std::string(kTrains))},
                     {"loop.py", "import torch.nn as nn\n" + std::string(kDist) + kLoop +
                                     "if __name__ == '__main__':\n"
                                     "    setup(None)\n"}}),
            "");
}

// A class of the helper joins, and no object of it is made.
TEST(ToDdpRefusal, RewritesBesideAClassThatIsNotMade) {
  EXPECT_EQ(
      refusal({{"train.py", script("from loop import fit\n" + std::string(kTrains))},
               {"loop.py",
                "import torch.nn as nn\nimport torch.distributed as dist\n" + std::string(kLoop) +
                    "class Trainer:\n"
                    "    def __init__(self):\n"
                    "        dist.init_process_group('nccl')\n"
                    "        self.model = nn.parallel.DistributedDataParallel(Net())\n"}}),
      "");
}

TEST(ToDdpRefusal, SaysThatDdpIsThereWithoutDataParallel) {
  EXPECT_EQ(refusal("import torch\n"
                    "torch.distributed.init_process_group('nccl')\n"
                    "# model = torch.nn.DataParallel(model)\n"
                    "model = torch.nn.parallel.DistributedDataParallel(model)\n"),
            "wraps in DistributedDataParallel already (line 4)");
}

// --- frameworks

TEST(ToDdpRefusal, LeavesWhatAFrameworkDistributes) {
  EXPECT_TRUE(refusal(script("import pytorch_lightning as pl\n"
                             "model = Work(nn.DataParallel(Net()))\n"
                             "pl.Trainer(devices=2).fit(model, DataLoader(Images()))\n"))
                  .starts_with("Lightning's Trainer distributes it (line 8)"));
  EXPECT_TRUE(refusal(script("from accelerate import Accelerator\n"
                             "accelerator = Accelerator()\n"
                             "model = nn.DataParallel(Net())\n"
                             "model, loader = accelerator.prepare(model, loader)\n"
                             "for x in loader:\n"
                             "    accelerator.backward(model(x).mean())\n"
                             "    optimizer.step()\n"))
                  .starts_with("Accelerate distributes it (line 7)"));
  EXPECT_TRUE(refusal(script("from transformers import Trainer\n"
                             "model = nn.DataParallel(Net())\n"
                             "trainer = Trainer(model=model)\n"
                             "trainer.train()\n"))
                  .starts_with("the Trainer of Hugging Face distributes it (line 8)"));
  const std::string said = rewritten({{"train.py",
                                       "from mmcv.parallel import MMDataParallel\n"
                                       "model = MMDataParallel(model, device_ids=[0])\n"}})
                               .refusal;
  EXPECT_TRUE(said.starts_with("wraps in mmcv's MMDataParallel (line 2)")) << said;
}

TEST(ToDdpRefusal, RewritesBesideFrameworksThatDistributeNothing) {
  const std::string trains = std::string(kLoop) + kTrains;
  EXPECT_EQ(refusal(script("from accelerate import Accelerator\n" + trains)), "");
  EXPECT_EQ(refusal(script("from pytorch_lightning import seed_everything\n"
                           "seed_everything(1)\n" +
                           trains)),
            "");
  EXPECT_EQ(refusal(script("from transformers import AutoModel\n" + trains)), "");
}

// A user who asks for DDP wants it, whatever the list says today.
TEST(ToDdpRefusal, RewritesAWrapperOfOneDevice) {
  EXPECT_EQ(refusal(script(std::string(kLoop) +
                           "model = nn.DataParallel(Net().cuda(), device_ids=[0])\n"
                           "fit(model, DataLoader(Images(), batch_size=64), optimizer)\n")),
            "");
}

}  // namespace
}  // namespace bench::diagnose
