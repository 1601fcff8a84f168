// bench diagnose --to-ddp on programs of which a run takes one of several branches: classes, files
// and wrappers, each of which has to come out right.

#include <gtest/gtest.h>

#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

constexpr const char* kHead =
    "import torch\n"
    "import torch.nn as nn\n";

// for name in self.names: setattr(self, "net" + name, DataParallel(net)) of the base.
TEST(ToDdpBranches, FindsWrappersThatABaseSetsByName) {
  const auto files = [](const std::string& names) {
    return Files{
        {"train.py",
         "from model import Gan\n"
         "from torch.utils.data import DataLoader\n"
         "model = Gan()\n"
         "model.parallelize()\n"
         "for epoch in range(9):\n"
         "    for x in DataLoader(data, batch_size=64, shuffle=True):\n"
         "        model.step(x)\n"},
        {"base.py", std::string(kHead) +
                        "class Base:\n"
                        "    def __init__(self):\n"
                        "        self.names = []\n"
                        "    def parallelize(self):\n"
                        "        for name in self.names:\n"
                        "            net = getattr(self, 'net' + name)\n"
                        "            setattr(self, 'net' + name, nn.DataParallel(net))\n"},
        {"model.py", std::string(kHead) +
                         "from base import Base\n"
                         "class Gan(Base):\n"
                         "    def __init__(self):\n"
                         "        self.names = " +
                         names +
                         "\n"
                         "        self.netG = nn.Linear(8, 8).cuda()\n"
                         "        self.optimizer = torch.optim.SGD(self.netG.parameters())\n"
                         "    def step(self, x):\n"
                         "        self.netG(x).mean().backward()\n"
                         "        self.optimizer.step()\n"}};
  };
  EXPECT_SILENT(listed(left_of(files("['G']"))), "is trained without a wrapper");
  EXPECT_TOLD(listed(left_of(files("['D']"))), "`self.netG` is trained without a wrapper");
}

// model = Large() or Small(), and DataParallel(model) below: what either optimises is inside.
TEST(ToDdpBranches, KnowsThePartsOfEachClassThatIsWrapped) {
  const std::string script =
      "import torch\n"
      "from torch.utils.data import DataLoader\n"
      "from models import create_model\n"
      "model = create_model(opt)\n"
      "for epoch in range(9):\n"
      "    for x in DataLoader(data, batch_size=64, shuffle=True):\n"
      "        loss = model(x).mean()\n"
      "        loss.backward()\n";
  const auto models = [](const std::string& wrapped) {
    std::string out = std::string(kHead) +
                      "def make_net():\n"
                      "    return nn.Linear(8, 2)\n";
    for (const char* name : {"Large", "Small"})
      out += "class " + std::string(name) +
             "(nn.Module):\n"
             "    def initialize(self, opt):\n"
             "        self.net = make_net()\n"
             "        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)\n"
             "    def forward(self, x):\n"
             "        return self.net(x)\n";
    return out +
           "def create_model(opt):\n"
           "    if opt.large:\n"
           "        model = Large()\n"
           "    else:\n"
           "        model = Small()\n"
           "    model.initialize(opt)\n"
           "    " +
           wrapped +
           "\n"
           "    return model\n";
  };
  const Files whole = {{"train.py", script},
                       {"models.py", models("model = nn.DataParallel(model)")}};
  EXPECT_SILENT(listed(left_of(whole)), "is trained without a wrapper");
}

// Both files are the script's, whichever it takes.
TEST(ToDdpBranches, EditsBothFilesOfAnImportUnderACondition) {
  const std::string trainer = std::string(kHead) +
                              "class Trainer:\n"
                              "    def __init__(self, opt):\n"
                              "        torch.cuda.set_device(0)\n"
                              "        self.net = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                              "    def fit(self, loader):\n"
                              "        for x in loader:\n"
                              "            self.net(x).sum().backward()\n";
  const Rewrite made = rewritten({{"train.py",
                                   "if opt.large:\n"
                                   "    from large import Trainer\n"
                                   "else:\n"
                                   "    from small import Trainer\n"
                                   "trainer = Trainer(opt)\n"
                                   "trainer.fit(loader)\n"},
                                  {"large.py", trainer},
                                  {"small.py", trainer}});
  for (const char* file : {"large.py", "small.py"}) {
    ASSERT_TRUE(made.texts.contains(file)) << file;
    EXPECT_TOLD(made.texts.at(file), "torch.cuda.set_device(torch.cuda.current_device()");
  }
}

// The keys of the checkpoint begin with "module.", on a GPU and without.
TEST(ToDdpBranches, KeepsTheWrapperOfEachBranchWhoseKeysAreRead) {
  const Script script{.above =
                          "frozen = Net()\n"
                          "if torch.cuda.is_available():\n"
                          "    frozen = nn.DataParallel(frozen)\n"
                          "else:\n"
                          "    frozen = nn.DataParallel(frozen, [])\n"
                          "frozen.load_state_dict(torch.load('frozen.pth'))\n"
                          "for p in frozen.parameters():\n"
                          "    p.requires_grad = False\n"};
  const std::string text = rewritten_text(script);
  EXPECT_TOLD(text, "    frozen = nn.DataParallel(frozen, device_ids=[local_rank])\nelse:");
  EXPECT_SILENT(text, "    pass\n");
}

// What DataParallel does to the object is nothing that ranks meet, unless they run it as a
// function.
TEST(ToDdpBranches, TellsNoFaultsOfTheWrapperThatIsGone) {
  const auto told_of = [](const std::string& pass) {
    return listed(
        left_of({{"train.py",
                  "from torch import nn\n"
                  "from torch.utils.data import DataLoader\n"
                  "from nets import make\n"
                  "net = make()\n"
                  "for epoch in range(9):\n"
                  "    for x in DataLoader(data, batch_size=64, shuffle=True):\n"
                  "        " +
                      pass +
                      ".sum().backward()\n"
                      "    print(net.seen)\n"},
                 {"nets.py", std::string(kHead) + "class Net(nn.Module):\n"
                                                  "    def __init__(self):\n"
                                                  "        super().__init__()\n"
                                                  "        self.fc = nn.Linear(8, 2)\n"
                                                  "        self.seen = 0\n"
                                                  "    def forward(self, x):\n"
                                                  "        self.seen = self.seen + 1\n"
                                                  "        return self.fc(x)\n"
                                                  "    def show(self):\n"
                                                  "        print(self.seen)\n"
                                                  "def make():\n"
                                                  "    net = nn.DataParallel(Net().cuda())\n"
                                                  "    return net\n"}}));
  };
  EXPECT_SILENT(told_of("net(x)"), "DP009");
  EXPECT_TOLD(told_of("nn.parallel.data_parallel(net, x)"), "DP009");
}

// A figure that nothing measures lowers all rates alike.
TEST(ToDdpBranches, TellsOfPlateausThatAreMeasured) {
  const auto plateau = [](const std::string& figure) {
    return told({.before = "metric = 0\n"
                           "scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\n",
                 .behind = "    " + figure + "\n    scheduler.step(metric)\n"});
  };
  EXPECT_SILENT(plateau("print(epoch)"), "lowers its learning rate");
  EXPECT_TRUE(says(plateau("metric = loss.item()"), "lowers its learning rate") ||
              says(plateau("metric = loss.item()"), "DDP027"));
}

// define_G and define_D of the family, which draw one after the other.
TEST(ToDdpBranches, SendsTheDrawsOfEachNetwork) {
  std::string networks = std::string(kHead) + "def init(m):\n    nn.init.normal_(m.weight)\n";
  for (const char* name : {"define_G", "define_D"})
    networks += "def " + std::string(name) +
                "():\n"
                "    net = nn.Linear(8, 8).cuda()\n"
                "    net = nn.DataParallel(net)\n"
                "    net.apply(init)\n"
                "    return net\n";
  const Rewrite made =
      rewritten({{"train.py", std::string(kHead) + "from networks import define_D, define_G\n"
                                                   "from torch.utils.data import DataLoader\n"
                                                   "G = define_G()\n"
                                                   "D = define_D()\n"
                                                   "g = torch.optim.SGD(G.parameters(), lr=0.1)\n"
                                                   "d = torch.optim.SGD(D.parameters(), lr=0.1)\n"
                                                   "for x in DataLoader(data, batch_size=64):\n"
                                                   "    loss_D = D(x).mean()\n"
                                                   "    loss_D.backward()\n"
                                                   "    d.step()\n"
                                                   "    loss_G = D(G(x)).mean()\n"
                                                   "    loss_G.backward()\n"
                                                   "    g.step()\n"},
                 {"networks.py", networks}});
  const std::string& text = made.texts.at("networks.py");
  const std::size_t first = text.find("broadcast(weight, 0)");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("broadcast(weight, 0)", first + 1), std::string::npos) << text;
}

// A pretrained encoder beside the network is read from a file, and the network is not.
TEST(ToDdpBranches, SendsDrawsBesideWhatIsRead) {
  const auto text = [](const std::string& read) {
    return rewritten_text({.above = "def init(m):\n    nn.init.normal_(m.weight)\n"
                                    "encoder = nn.DataParallel(Net().cuda())\n",
                           .wrap = "model = nn.DataParallel(model)\nmodel.apply(init)\n" + read});
  };
  EXPECT_TOLD(text("encoder.load_state_dict(torch.load('encoder.pth'))\n"), "broadcast(weight, 0)");
  EXPECT_SILENT(text("model.load_state_dict(torch.load('model.pth'))\n"), "broadcast(weight, 0)");
}

// The seed of one generator is none for the weights.
TEST(ToDdpBranches, SendsDrawsOfRanksThatShareNoSeed) {
  const auto text = [](const std::string& seed) {
    return rewritten_text({.above = "def init(m):\n"
                                    "    nn.init.normal_(m.weight)\n" +
                                    seed,
                           .wrap = "model = nn.DataParallel(model)\nmodel.apply(init)\n"});
  };
  EXPECT_TOLD(text("g = torch.Generator().manual_seed(0)\n"),
              "model.apply(init)\n"
              "if isinstance(model, torch.nn.parallel.DistributedDataParallel):\n"
              "    for weight in model.state_dict().values():\n"
              "        torch.distributed.broadcast(weight, 0)\n");
  EXPECT_TOLD(text("import numpy as np\nnp.random.seed(0)\n"), "broadcast(weight, 0)");
  EXPECT_SILENT(text("torch.manual_seed(0)\n"), "broadcast(weight");
  EXPECT_SILENT(text("from tools import set_seed\nset_seed(0)\n"), "broadcast(weight");
}

}  // namespace
}  // namespace bench::diagnose
