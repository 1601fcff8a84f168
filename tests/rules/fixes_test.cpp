// What --fix writes: the mistake is gone, and every way in which the project runs the line stays
// right.
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/fix.hpp"
#include "scenarios/pitfalls/program/edits.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace bench::diagnose {
namespace {

using Files = std::map<std::string, std::string>;

// The files after one round of fixes of the rule, with `script` as the program.
Files fixed(const Files& files, const std::string& rule, const std::string& script = "train.py") {
  DiagnoseOptions options;
  options.selection.select = {rule};
  std::size_t applied = 0;
  Files out = files;
  for (auto& [file, text] : apply_fixes(diagnose_texts(files, script, options), files, applied))
    out[file] = text;
  return out;
}

std::string fixed_script(const std::string& text, const std::string& rule) {
  return fixed({{"train.py", text}}, rule).at("train.py");
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kImports =
    "import os\n"
    "import shutil\n"
    "import torch\n"
    "import torch.distributed as dist\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "from torch.utils.data import DataLoader, DistributedSampler, RandomSampler\n";

// --- DDP039: the test of the rank

TEST(GuardsOfSaves, AskForTheGroupWhereAnotherFileMayCallWithout) {
  const std::string helper =
      "import torch\nimport torch.distributed as dist\n"
      "def keep(net, path):\n    torch.save(net.state_dict(), path)\n";
  const std::string script = kImports +
                             "from keeping import keep\n"
                             "dist.init_process_group('nccl')\n"
                             "net = DDP(Net())\nkeep(net, 'model.pt')\n";
  const std::string text =
      fixed({{"train.py", script}, {"keeping.py", helper}}, "DDP039").at("keeping.py");
  EXPECT_TRUE(has(text,
                  "    if not dist.is_initialized() or dist.get_rank() == 0:\n"
                  "        torch.save(net.state_dict(), path)\n"))
      << text;
}

TEST(GuardsOfSaves, AskWhetherTorchHasGroupsWhereTheFileDoes) {
  const std::string text = fixed_script(kImports +
                                            "several = dist.is_available() and count > 1\n"
                                            "if count > 1:\n    dist.init_process_group('nccl')\n"
                                            "net = DDP(Net()) if several else Net()\n"
                                            "torch.save(net.state_dict(), 'model.pt')\n",
                                        "DDP039");
  EXPECT_TRUE(has(text,
                  "if not (dist.is_available() and dist.is_initialized()) or "
                  "dist.get_rank() == 0:\n    torch.save("))
      << text;
}

TEST(GuardsOfSaves, AskWhatTheClassAsksElsewhere) {
  const std::string text =
      fixed_script(kImports +
                       "class Trainer:\n"
                       "    def __init__(self, net, local_rank=0):\n"
                       "        self.local_rank = local_rank\n"
                       "        self.net = DDP(net)\n"
                       "    def log(self, text):\n"
                       "        if self.local_rank == 0:\n"
                       "            print(text)\n"
                       "    def save(self):\n"
                       "        torch.save(self.net.state_dict(), 'model.pt')\n"
                       "dist.init_process_group('nccl')\n"
                       "Trainer(Net(), int(os.environ['LOCAL_RANK'])).save()\n",
                   "DDP039");
  EXPECT_TRUE(has(text, "        if self.local_rank == 0:\n            torch.save(")) << text;
}

TEST(GuardsOfSaves, UseTheHelperThatTheFileImports) {
  const std::string ranks =
      "import torch.distributed as dist\n"
      "def is_main_process():\n"
      "    return not dist.is_initialized() or dist.get_rank() == 0\n";
  const std::string script = kImports +
                             "from ranks import is_main_process\n"
                             "dist.init_process_group('nccl')\n"
                             "net = DDP(Net())\n"
                             "torch.save(net.state_dict(), 'model.pt')\n";
  EXPECT_TRUE(has(fixed({{"train.py", script}, {"ranks.py", ranks}}, "DDP039").at("train.py"),
                  "if is_main_process():\n    torch.save("));
}

TEST(GuardsOfSaves, LeaveAParameterThatMayBeNone) {
  const std::string text = fixed_script(kImports +
                                            "def train(net, rank=None):\n"
                                            "    dist.init_process_group('nccl')\n"
                                            "    net = DDP(net)\n"
                                            "    torch.save(net.state_dict(), 'model.pt')\n"
                                            "train(Net())\n",
                                        "DDP039");
  EXPECT_TRUE(has(text, "    if dist.get_rank() == 0:\n        torch.save(")) << text;
}

// --- DDP039: what the other ranks do with the file

const std::string kJoined = kImports + "dist.init_process_group('nccl')\nnet = DDP(Net())\n";

TEST(GuardsOfSaves, AreNotMadeWhereAllRanksReadTheFileBelow) {
  for (const char* use :
       {"artifact.add_file(path)", "state = torch.load(path)", "upload(str(path))",
        "states.append(torch.load(path))", "log(1.0)\nshutil.copy(path, 'best.pt')",
        "shutil.copy(path, 'best.pt'); dist.barrier()"}) {
    const std::string script =
        kJoined + "torch.save(net.state_dict(), path)\n" + std::string(use) + "\n";
    EXPECT_EQ(fixed_script(script, "DDP039"), script);
  }
  const std::string one_line = kJoined + "torch.save(net.state_dict(), path); dist.barrier()\n";
  EXPECT_EQ(fixed_script(one_line, "DDP039"), one_line);
}

TEST(GuardsOfSaves, AreMadeAboveABarrier) {
  const std::string text = fixed_script(kJoined +
                                            "torch.save(net.state_dict(), path)\n"
                                            "dist.barrier()\n"
                                            "state = torch.load(path)\n",
                                        "DDP039");
  EXPECT_TRUE(has(text, "    torch.save(net.state_dict(), path)\ndist.barrier()\n")) << text;
}

// A test of another place is no test here: no self, a name of a function, a rank that may be -1.
TEST(GuardsOfSaves, BorrowNoTestThatDoesNotHoldThere) {
  const std::string head = kImports +
                           "class Trainer:\n"
                           "    def __init__(self, net, args):\n"
                           "        self.rank = args.local_rank\n"
                           "        self.net = DDP(net)\n"
                           "    def log(self, text):\n"
                           "        if self.rank == 0:\n"
                           "            print(text)\n";
  for (const char* method :
       {"    @staticmethod\n    def save(net, path):\n        torch.save(net, path)\n",
        "    @classmethod\n    def save(cls, net, path):\n        torch.save(net, path)\n"}) {
    const std::string text = fixed_script(
        head + method + "dist.init_process_group('nccl')\nTrainer.save(DDP(Net()), 'a.pt')\n",
        "DDP039");
    EXPECT_FALSE(has(text, "if self.rank == 0:\n            torch.save(")) << text;
  }
  const std::string text =
      fixed_script("import argparse\n" + head +
                       "    def save(self, path):\n"
                       "        torch.save(self.net, path)\n"
                       "parser = argparse.ArgumentParser()\n"
                       "parser.add_argument('--local_rank', type=int, default=-1)\n"
                       "args = parser.parse_args()\n"
                       "dist.init_process_group('nccl')\n"
                       "Trainer(Net(), args).save('a.pt')\n",
                   "DDP039");
  EXPECT_FALSE(has(text, "if self.rank == 0:\n            torch.save(")) << text;
}

TEST(GuardsOfSaves, HoldTheCopyBelowAsWell) {
  const std::string text =
      fixed_script(kImports +
                       "def keep(state, is_best, path):\n"
                       "    torch.save(state, path)\n"
                       "    if is_best:\n"
                       "        shutil.copyfile(path, 'best.pth.tar')\n"
                       "dist.init_process_group('nccl')\n"
                       "net = DDP(Net())\n"
                       "keep({'state_dict': net.state_dict()}, True, 'a.pt')\n",
                   "DDP039");
  EXPECT_TRUE(has(text,
                  "        torch.save(state, path)\n"
                  "        if is_best:\n"
                  "            shutil.copyfile(path, 'best.pth.tar')\n"))
      << text;
}

TEST(GuardsOfSaves, AreNotMadeWhereTheCallerLoadsTheFileNext) {
  const std::string script = kImports +
                             "class Trainer:\n"
                             "    def __init__(self, net):\n"
                             "        dist.init_process_group('nccl')\n"
                             "        self.net = DDP(net)\n"
                             "    def save(self, path):\n"
                             "        torch.save(self.net.state_dict(), path)\n"
                             "    def load(self, path):\n"
                             "        self.net.load_state_dict(torch.load(path))\n"
                             "trainer = Trainer(Net())\n"
                             "trainer.save(os.path.join(folder, 'first.pth'))\n"
                             "trainer.load(os.path.join(folder, 'first.pth'))\n";
  EXPECT_EQ(fixed_script(script, "DDP039"), script);
}

TEST(GuardsOfSaves, AreMadeWherePathsAreOnlyShownBelow) {
  const std::string text = fixed_script(
      kJoined + "torch.save(net.state_dict(), path)\nprint('saved to', path)\n", "DDP039");
  EXPECT_TRUE(has(text, "if dist.get_rank() == 0:\n    torch.save(")) << text;
}

TEST(GuardsOfSaves, AreNotMadeWhereNothingShowsRanks) {
  const std::string script =
      "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
      "class Net(DDP):\n    def keep(self, path):\n"
      "        torch.save(self.module.state_dict(), path)\n";
  EXPECT_EQ(fixed_script(script, "DDP039"), script);
}

TEST(GuardsOfSaves, AreNotMadeWhereOnlyANameLeads) {
  const std::string script = kJoined +
                             "class Session:\n"
                             "    def keep(self):\n"
                             "        torch.save(net.state_dict(), 'model.pt')\n"
                             "session = make_session()\n"
                             "session.keep()\n"
                             "net(x).backward()\n";
  EXPECT_FALSE(diagnose_texts({{"train.py", script}}, "train.py", DiagnoseOptions()).empty());
  EXPECT_EQ(fixed_script(script, "DDP039"), script);
}

// --- DDP018

std::string epochs_of(const std::string& head) {
  return head +
         "for epoch in range(9):\n"
         "    # one pass\n"
         "    net.train()\n"
         "    for x in loader:\n"
         "        net(x).backward()\n";
}

TEST(CallsOfSetEpoch, StandAboveTheCommentOfTheFirstLine) {
  const std::string text =
      fixed_script(epochs_of(kJoined + "sampler = DistributedSampler(data)\n"
                                       "loader = DataLoader(data, sampler=sampler)\n"),
                   "DDP018");
  EXPECT_TRUE(has(text, "(9):\n    sampler.set_epoch(epoch)\n    # one pass\n    net.train()\n"))
      << text;
}

TEST(CallsOfSetEpoch, AskWhatTheSamplerIsMadeUnder) {
  const std::string text =
      fixed_script(epochs_of(kJoined + "if several:\n"
                                       "    sampler = DistributedSampler(data)\n"
                                       "    loader = DataLoader(data, sampler=sampler)\n"
                                       "else:\n"
                                       "    loader = DataLoader(data, shuffle=True)\n"),
                   "DDP018");
  EXPECT_TRUE(has(text, "    if several:\n        sampler.set_epoch(epoch)\n")) << text;
}

TEST(CallsOfSetEpoch, AskForNoneOrForTheMethod) {
  const std::string head = "sampler = DistributedSampler(data)\n";
  const std::string loader = "loader = DataLoader(data, sampler=sampler)\n";
  EXPECT_TRUE(
      has(fixed_script(epochs_of(kJoined + "sampler = None\nif several:\n    " + head + loader),
                       "DDP018"),
          "    if sampler is not None:\n        sampler.set_epoch(epoch)\n"));
  EXPECT_TRUE(has(fixed_script(epochs_of(kJoined + "if count > 1:\n    " + head +
                                         "else:\n    sampler = RandomSampler(data)\n" + loader),
                               "DDP018"),
                  "    if hasattr(sampler, \"set_epoch\"):\n        sampler.set_epoch(epoch)\n"));
}

TEST(CallsOfSetEpoch, AskALoaderThatOthersMayHandIn) {
  const std::string text =
      fixed_script(kImports +
                       "def train(net, batches):\n"
                       "    for epoch in range(9):\n"
                       "        for x in batches:\n"
                       "            net(x).backward()\n"
                       "dist.init_process_group('nccl')\n"
                       "train(DDP(Net()), DataLoader(data, sampler=DistributedSampler(data)))\n",
                   "DDP018");
  EXPECT_TRUE(has(text,
                  "        if hasattr(batches.sampler, \"set_epoch\"):\n"
                  "            batches.sampler.set_epoch(epoch)\n"))
      << text;
}

TEST(CallsOfSetEpoch, AreNotMadeAboveTheLoopThatNamesTheLoader) {
  const std::string script =
      kImports +
      "dist.init_process_group('nccl')\n"
      "net = DDP(Net())\n"
      "loaders = [DataLoader(d, sampler=DistributedSampler(d)) for d in parts]\n"
      "for epoch in range(9):\n"
      "    for loader in loaders:\n"
      "        for x in loader:\n"
      "            net(x).backward()\n";
  EXPECT_EQ(fixed_script(script, "DDP018"), script);
}

TEST(CallsOfSetEpoch, AreLeftToTheLineThatStartsTheLoaderAgain) {
  const std::string script = kJoined +
                             "sampler = DistributedSampler(data)\n"
                             "loader = DataLoader(data, sampler=sampler)\n"
                             "batches = iter(loader)\n"
                             "for step in range(9000):\n"
                             "    for _ in range(4):\n"
                             "        try:\n"
                             "            x = next(batches)\n"
                             "        except StopIteration:\n"
                             "            batches = iter(loader)\n"
                             "            x = next(batches)\n"
                             "        net(x).backward()\n";
  EXPECT_EQ(fixed_script(script, "DDP018"), script);
}

// --- DDP019

TEST(FixesOfShuffle, KeepItForRunsWithoutASampler) {
  const std::string text =
      fixed_script(kImports +
                       "sampler = DistributedSampler(data) if several else None\n"
                       "loader = DataLoader(data, shuffle=True,\n"
                       "                    sampler=sampler)\n",
                   "DDP019");
  EXPECT_TRUE(has(text, "DataLoader(data, shuffle=(sampler is None),\n")) << text;
}

TEST(FixesOfShuffle, KeepTheLinesOfTheCall) {
  const auto after = [](const std::string& call) {
    return fixed_script(kImports + "sampler = DistributedSampler(data)\nloader = " + call + "\n",
                        "DDP019");
  };
  EXPECT_TRUE(has(after("DataLoader(data, shuffle=True,\n    sampler=sampler)"),
                  "DataLoader(data,\n    sampler=sampler)\n"));
  EXPECT_TRUE(has(after("DataLoader(\n    data,\n    shuffle=True,\n    sampler=sampler,\n)"),
                  "DataLoader(\n    data,\n    sampler=sampler,\n)\n"));
  EXPECT_TRUE(has(after("DataLoader(data, sampler=sampler, shuffle=True)"),
                  "DataLoader(data, sampler=sampler)\n"));
}

// --- DDP026, DDP028, DDP041, LAU002, LAU003

TEST(FixesOfDirectories, TakeThePlaceOfAMisspeltKeyword) {
  EXPECT_TRUE(has(fixed_script(kJoined + "os.makedirs('runs', exists_ok=True)\n", "DDP026"),
                  "os.makedirs('runs', exist_ok=True)\n"));
}

TEST(FixesOfDirectories, CallMakedirsWhereMkdirKnowsNoKeyword) {
  const std::string asked = kJoined + "if not os.path.exists('runs'):\n    ";
  EXPECT_TRUE(has(fixed_script(asked + "os.mkdir('runs')\n", "DDP026"),
                  "    os.makedirs('runs', exist_ok=True)\n"));
  EXPECT_TRUE(has(fixed_script(kJoined + "if best:\n    if not os.path.exists('runs'):\n"
                                         "        os.mkdir('runs')\n",
                               "DDP026"),
                  "        os.makedirs('runs', exist_ok=True)\n"));
  for (const std::string& kept : {kJoined + "os.mkdir('runs')\n",  // a run that is there stops it
                                  asked + "os.mkdir('runs', 0o700)\n"})
    EXPECT_EQ(fixed_script(kept, "DDP026"), kept);
}

TEST(FixesOfCheckpoints, NeedAPyTorchThatHasTheKeyword) {
  const std::string script = kImports +
                             "from torch.utils.checkpoint import checkpoint\n"
                             "class Model(torch.nn.Module):\n"
                             "    def forward(self, x):\n"
                             "        return checkpoint(\n"
                             "            self.block,\n"
                             "            x,\n"
                             "        )\n"
                             "dist.init_process_group('nccl')\n"
                             "net = DDP(Model(), find_unused_parameters=True)\n"
                             "net(x).backward()\n";
  EXPECT_TRUE(has(fixed_script(script, "DDP028"),
                  "            x,\n            use_reentrant=False,\n        )\n"));
  for (const char* pin : {"torch==1.7.1\n", "pytorch=1.8.1=py3.8_cuda11.1_cudnn8.0.5_0\n"}) {
    const Files files{{"train.py", script}, {"requirements.txt", pin}};
    EXPECT_EQ(fixed(files, "DDP028").at("train.py"), script) << pin;
  }
}

TEST(FixesOfSaves, KeepTheKeysThatAnotherFileReads) {
  const std::string script = kImports +
                             "net = torch.nn.DataParallel(Net())\n"
                             "net(x).backward()\n"
                             "torch.save(net.state_dict(), 'model.pt')\n";
  EXPECT_TRUE(has(fixed_script(script, "DDP041"), "torch.save(net.module.state_dict()"));
  const std::string reader =
      "import torch\nnet = Net()\nnet = torch.nn.DataParallel(net)\n"
      "net.load_state_dict(torch.load('model.pt'), strict=False)\n";
  for (const char* place : {"evaluate.py", "tools/evaluate.py"})
    EXPECT_EQ(fixed({{"train.py", script}, {place, reader}}, "DDP041").at("train.py"), script);
}

const std::string kOption =
    "import argparse\nimport os\nimport torch\nimport torch.distributed as dist\n";

TEST(FixesOfLaunchers, KeepTheQuotesOfTheLine) {
  const std::string text =
      fixed_script("# python -m torch.distributed.launch --nproc_per_node=4 train.py\n" + kOption +
                       "parser = argparse.ArgumentParser()\n"
                       "parser.add_argument('--local_rank', type=int)\n"
                       "args = parser.parse_args()\n"
                       "dist.init_process_group('nccl')\n"
                       "torch.cuda.set_device(args.local_rank)\n",
                   "LAU003");
  EXPECT_TRUE(has(text, "add_argument('--local-rank', '--local_rank', type=int)")) << text;
}

TEST(FixesOfLaunchers, WaitForTheVersionThatChangedTheSpelling) {
  const Files files{
      {"train.py", "# python -m torch.distributed.launch --nproc_per_node=4 train.py\n" + kOption +
                       "parser = argparse.ArgumentParser()\n"
                       "parser.add_argument('--local_rank', type=int)\n"
                       "args = parser.parse_args()\n"
                       "dist.init_process_group('nccl')\n"
                       "torch.cuda.set_device(args.local_rank)\n"},
      {"requirements.txt", "torch==1.13.1\n"}};
  EXPECT_EQ(fixed(files, "LAU003"), files);
}

TEST(FixesOfLaunchers, ChangeTheParserThatIsUsed) {
  const std::string text =
      fixed_script("# torchrun --nproc_per_node=4 train.py\n" + kOption +
                       "def old_options():\n"
                       "    parser = argparse.ArgumentParser()\n"
                       "    parser.add_argument('--local_rank', type=int, default=-1)\n"
                       "    return parser.parse_args()\n"
                       "def options():\n"
                       "    parser = argparse.ArgumentParser()\n"
                       "    parser.add_argument('--local_rank', type=int, default=-2)\n"
                       "    return parser.parse_args()\n"
                       "args = options()\n"
                       "dist.init_process_group('nccl')\n"
                       "torch.cuda.set_device(args.local_rank)\n",
                   "LAU002");
  EXPECT_TRUE(has(text, "type=int, default=-1)")) << text;
  EXPECT_TRUE(has(text, "default=int(os.environ.get('LOCAL_RANK', -2))")) << text;
}

TEST(FixesOfTrainers, WaitForImportsThatLightning2HasNot) {
  const std::string script =
      "import pytorch_lightning as pl\n"
      "trainer = pl.Trainer(gpus=[0, 1])\n";
  EXPECT_TRUE(has(fixed_script(script, "LIT001"), "accelerator=\"gpu\", devices=[0, 1]"));
  const std::string older =
      "from pytorch_lightning.plugins.training_type import DDPPlugin\n" + script;
  EXPECT_EQ(fixed_script(older, "LIT001"), older);
}

// --- the edits themselves

TEST(Edits, PutAStatementBehindTheCommentOfALine) {
  const Module module("train.py", "train", "def f():\n    x = 1  # one\n    y = 2\n");
  Finding finding;
  const auto& tree = module.tree();
  for (NodeId at = 0; at < tree.size(); ++at)
    if (tree[at].kind == Kind::integer && tree.text(at) == "1")
      pitfalls::insert_after({&module, at}, "z = 3", "", finding);
  ASSERT_TRUE(finding.fix);
  EXPECT_EQ(apply_edits(std::string(tree.source()), finding.fix->edits),
            "def f():\n    x = 1  # one\n    z = 3\n    y = 2\n");
}

TEST(Edits, LeaveFutureImportsFirst) {
  const Module module("train.py", "train", "from __future__ import annotations\nimport sys\n");
  Finding finding;
  ASSERT_TRUE(pitfalls::insert_import(module, "os", "", finding));
  EXPECT_EQ(apply_edits(std::string(module.tree().source()), finding.fix->edits),
            "from __future__ import annotations\nimport os\nimport sys\n");
}

}  // namespace
}  // namespace bench::diagnose
