// What bench diagnose --to-ddp says of wrappers that a script reaches by a name that a run makes.

#include <gtest/gtest.h>

#include "tests/rules/rewritten.hpp"

namespace bench::diagnose {
namespace {

constexpr const char* kRunner =
    "import torch\n"
    "import torch.nn as nn\n"
    "class Runner:\n"
    "    def __init__(self, config):\n"
    "        self.model = nn.DataParallel(Net().cuda())\n"
    "        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)\n"
    "    def train(self):\n"
    "        for x, y in loader:\n"
    "            self.model(x).sum().backward()\n"
    "            self.optimizer.step()\n";

std::string refusal(const RewrittenFiles& files, const std::string& script = "train.py") {
  const Rewrite made = rewritten(files, script);
  EXPECT_EQ(made.refusal.empty(), !made.steps.empty()) << made.refusal;
  return made.refusal;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ToDdpUnfollowed, NamesThePlaceAndTheLookup) {
  for (const char* lookup :
       {"from runner.gan import *\nrunner = eval('Run' + config.runner)(config)\n",
        "import importlib\nrunner = importlib.import_module(name).Runner(config)\n",
        "import runner.gan as all\nrunner = getattr(some(all), config.runner)(config)\n"}) {
    const std::string said = refusal(
        {{"train.py", std::string(lookup) + "runner.train()\n"}, {"runner/gan.py", kRunner}});
    EXPECT_TRUE(says(said, "the project has one in runner/gan.py:5")) << lookup << said;
    EXPECT_TRUE(says(said, "train.py:2 looks code up by a name that only a run knows")) << said;
  }
}

TEST(ToDdpUnfollowed, NamesThePlaceAlone) {
  const std::string said = refusal(
      {{"train.py", "from trainer import fit\nfit(model, data)\n"}, {"other/gan.py", kRunner}});
  EXPECT_TRUE(says(said, "the project has one in other/gan.py:5: give the script")) << said;
}

// Quotes in comments and in short texts begin no text over several lines.
TEST(ToDdpUnfollowed, NamesPlacesBehindQuotes) {
  for (const char* above : {"#'''\n", "x = 1  # a \"\"\" in words\n", "x = '\"\"\"'\n"}) {
    const std::string said = refusal({{"train.py", "from trainer import fit\nfit(model, data)\n"},
                                      {"other/gan.py", above + std::string(kRunner)}});
    EXPECT_TRUE(says(said, "the project has one in other/gan.py:6")) << above << said;
  }
}

// What stands in comments, definitions and longer names wraps nothing.
TEST(ToDdpUnfollowed, IsSilentOfOtherMentions) {
  const Rewrite made = rewritten({{"train.py", "from trainer import fit\nfit(model, data)\n"},
                                  {"other.py",
                                   "# model = nn.DataParallel(model)\n"
                                   "def patch(model):\n"
                                   "    \"\"\"Add the callback.\n"
                                   "    > model = DataParallel(model, device_ids=[0, 1])\n"
                                   "    \"\"\"\n"
                                   "class Own(nn.DataParallel):\n    pass\n"
                                   "class DataParallel(nn.Module):\n    pass\n"
                                   "model = DistributedDataParallel(model)\n"}});
  EXPECT_EQ(made.refusal, "");
  EXPECT_TRUE(made.steps.empty());
}

TEST(ToDdpUnfollowed, KnowsMethodsThatABaseLeavesEmpty) {
  const std::string base =
      "class Base:\n    def optimize(self):\n        \"\"\"Of a model.\"\"\"\n        pass\n";
  const std::string said =
      refusal({{"train.py",
                "import importlib\n"
                "from models.base import Base\n"
                "def make(name) -> Base:\n"
                "    for name, cls in importlib.import_module('zoo.' + name).__dict__.items():\n"
                "        if issubclass(cls, Base):\n            return cls()\n"
                "model = make(opt.model)\n"
                "model.optimize()\n"},
               {"models/base.py", base},
               {"nets/wrap.py", "import torch\nnet = torch.nn.DataParallel(net)\n"}});
  EXPECT_TRUE(says(said, "nets/wrap.py:2, and train.py:4 looks code up")) << said;
}

TEST(ToDdpUnfollowed, EntersTheFunctionOfACommand) {
  const RewrittenFiles files = {
      {"pkg/__main__.py",
       "import torch\n"
       "from torch.utils.data import DataLoader\n"
       "def train():\n"
       "    model = torch.nn.DataParallel(Net().cuda())\n"
       "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
       "    for x, y in DataLoader(Images(), batch_size=64, shuffle=True):\n"
       "        model(x).sum().backward()\n"
       "        optimizer.step()\n"},
      {"setup.py", "setup(entry_points={'console_scripts': ['learn = pkg.__main__:train']})\n"}};
  EXPECT_EQ(refusal(files, "pkg/__main__.py"), "");
  EXPECT_TRUE(says(rewritten(files, "pkg/__main__.py").texts.at("pkg/__main__.py"),
                   "def train():\n    torch.cuda.set_device(local_rank)\n"));
  EXPECT_TRUE(says(rewritten(files, "pkg/__main__.py").launch, " --no-python learn"));
}

TEST(ToDdpUnfollowed, StartsFilesOfPackagesAsModules) {
  const std::string text =
      "import torch\n"
      "from torch.utils.data import DataLoader\n"
      "from .net import Net\n"
      "model = torch.nn.DataParallel(Net().cuda())\n"
      "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
      "for x, y in DataLoader(Images(), batch_size=64, shuffle=True):\n"
      "    model(x).sum().backward()\n"
      "    optimizer.step()\n";
  const std::string net =
      "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
      "        self.fc = torch.nn.Linear(3, 3)\n";
  EXPECT_TRUE(rewritten({{"pkg/train.py", text}, {"pkg/net.py", net}}, "pkg/train.py")
                  .launch.ends_with(" -m pkg.train"));
}

TEST(ToDdpUnfollowed, LeavesCopiesOfTheWrapperAlone) {
  const std::string said =
      refusal({{"train.py",
                "import torch\n"
                "from parallel import DataParallel\n"
                "model = DataParallel(net)\n"
                "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                "for x in loader:\n    model(x).sum().backward()\n    optimizer.step()\n"
                "best = torch.nn.DataParallel(net)\n"},
               {"parallel.py", "import torch\nclass DataParallel(torch.nn.Module):\n    pass\n"}});
  EXPECT_TRUE(says(said, "wraps in DataParallel (line 3), a class of the project (parallel.py)"))
      << said;
}

}  // namespace
}  // namespace bench::diagnose
