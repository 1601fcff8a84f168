// bench diagnose --to-ddp on programs of which a run picks the classes by a name that it makes.

#include <gtest/gtest.h>

#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

constexpr const char* kHead =
    "import torch\n"
    "import torch.nn as nn\n"
    "from torch.utils.data import DataLoader\n";

// A class that trains, of which the wrapper stands in its constructor.
std::string trainer(const std::string& name, const std::string& base = "",
                    const std::string& decorator = "") {
  return decorator + "class " + name + (base.empty() ? "" : "(" + base + ")") +
         ":\n"
         "    def __init__(self, opt):\n"
         "        self.net = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
         "        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)\n"
         "    def fit(self, data):\n"
         "        loader = DataLoader(data, batch_size=64, shuffle=True)\n"
         "        for epoch in range(9):\n"
         "            for x, y in loader:\n"
         "                loss = nn.functional.cross_entropy(self.net(x), y)\n"
         "                self.optimizer.zero_grad()\n"
         "                loss.backward()\n"
         "                self.optimizer.step()\n";
}

const std::string kWrapped = "self.net = DistributedDataParallel(nn.Linear(8, 2).cuda()";

void expect_wrapped(const Files& files, const std::string& file) {
  const Rewrite made = rewritten(files);
  EXPECT_EQ(made.refusal, "") << files.at("train.py");
  ASSERT_TRUE(made.texts.contains(file)) << files.at("train.py");
  EXPECT_TRUE(says(made.texts.at(file), kWrapped)) << made.texts.at(file);
  EXPECT_TRUE(says(made.texts.at(file), "sampler=DistributedSampler")) << made.texts.at(file);
  EXPECT_TRUE(says(made.texts.at("train.py"), "init_process_group")) << made.texts.at("train.py");
}

void expect_left_alone(const Files& files) {
  const Rewrite made = rewritten(files);
  EXPECT_TRUE(made.steps.empty()) << files.at("train.py");
}

// All ways that lead from the script to a class of the one file.
TEST(ToDdpLookedUp, WrapsInClassesThatARunPicks) {
  const std::string gan = kHead + trainer("GanTrainer");
  for (const char* script :
       {"import importlib\n"
        "lib = importlib.import_module('trainers.' + opt.name + '_trainer')\n"
        "worker = getattr(lib, opt.kind)(opt)\nworker.fit(data)\n",
        "import importlib\n"
        "worker = importlib.import_module('trainers.%s_trainer' % name).GanTrainer(opt)\n"
        "worker.fit(data)\n",
        "import importlib\n"
        "lib = importlib.import_module('trainers.' + name + '_trainer')\n"
        "for key, cls in lib.__dict__.items():\n"
        "    if key.lower() == name:\n        kind = cls\n"
        "worker = kind(opt)\nworker.fit(data)\n",
        "from trainers import gan_trainer\n"
        "worker = getattr(gan_trainer, opt.kind)(opt)\nworker.fit(data)\n",
        "from trainers.gan_trainer import *\nworker = eval(opt.kind)(opt)\nworker.fit(data)\n",
        "from trainers.gan_trainer import GanTrainer\n"
        "worker = globals()[opt.kind](opt)\nworker.fit(data)\n",
        "from trainers.gan_trainer import GanTrainer\n"
        "worker = {'gan': GanTrainer}[opt.kind](opt)\nworker.fit(data)\n",
        "from trainers.gan_trainer import GanTrainer\n"
        "KINDS = {'gan': GanTrainer}\n"
        "worker = KINDS[opt.kind](opt)\nworker.fit(data)\n",
        "import trainers.gan_trainer as all\n"
        "worker = all.__dict__[opt.kind](opt)\nworker.fit(data)\n"})
    expect_wrapped({{"train.py", script}, {"trainers/gan_trainer.py", gan}},
                   "trainers/gan_trainer.py");
}

TEST(ToDdpLookedUp, WrapsInRegisteredClasses) {
  const std::string registry =
      "class Registry:\n"
      "    def __init__(self):\n        self.kept = {}\n"
      "    def register(self, cls):\n        self.kept[cls.__name__] = cls\n        return cls\n"
      "    def get(self, name):\n        return self.kept[name]\n"
      "TRAINERS = Registry()\n";
  const std::string table =
      "TRAINERS = {}\n"
      "def register(name):\n"
      "    def keep(cls):\n        TRAINERS[name] = cls\n        return cls\n"
      "    return keep\n";
  const std::string script = "from tables import TRAINERS\nimport trainers\n";
  expect_wrapped({{"train.py", script + "worker = TRAINERS.get(opt.kind)(opt)\nworker.fit(data)\n"},
                  {"tables.py", registry},
                  {"trainers.py", "from tables import TRAINERS\n" + std::string(kHead) +
                                      trainer("Gan", "", "@TRAINERS.register\n")}},
                 "trainers.py");
  expect_wrapped({{"train.py", script + "worker = TRAINERS[opt.kind](opt)\nworker.fit(data)\n"},
                  {"tables.py", table},
                  {"trainers.py", "from tables import register\n" + std::string(kHead) +
                                      trainer("Gan", "", "@register('gan')\n")}},
                 "trainers.py");
}

// Of several classes each is rewritten; one that wraps in a way of its own stops all of it.
TEST(ToDdpLookedUp, RewritesAllOrNone) {
  const std::string script =
      "import importlib\n"
      "worker = importlib.import_module('trainers.' + name).Trainer(opt)\nworker.fit(data)\n";
  const Files both = {{"train.py", script},
                      {"trainers/one.py", kHead + trainer("Trainer")},
                      {"trainers/two.py", kHead + trainer("Trainer")}};
  expect_wrapped(both, "trainers/one.py");
  expect_wrapped(both, "trainers/two.py");
  Files own = both;
  own["trainers/two.py"] = kHead +
                           std::string(
                               "class Parallel(nn.DataParallel):\n"
                               "    def scatter(self, *given):\n"
                               "        return given\n") +
                           "class Trainer:\n"
                           "    def __init__(self, opt):\n"
                           "        self.net = Parallel(nn.Linear(8, 2).cuda())\n"
                           "    def fit(self, data):\n"
                           "        for x in data:\n"
                           "            self.net(x).sum().backward()\n";
  const Rewrite made = rewritten(own);
  EXPECT_TRUE(made.steps.empty());
  EXPECT_TRUE(says(made.refusal, "wraps in Parallel (trainers/two.py")) << made.refusal;
}

// One of the networks that a run may pick has buffers, which a second pass would copy anew.
TEST(ToDdpLookedUp, LooksAtEachNetworkThatARunPicks) {
  const auto text = [](const std::string& norm) {
    std::string nets = kHead;
    for (const auto& [name, layer] : {std::pair<std::string, std::string>{"Plain", "nn.ReLU()"},
                                      std::pair<std::string, std::string>{"Other", norm}})
      nets += "class " + name +
              "(nn.Module):\n"
              "    def __init__(self):\n"
              "        super().__init__()\n"
              "        self.net = nn.Sequential(nn.Linear(8, 2), " +
              layer +
              ")\n"
              "    def forward(self, x):\n"
              "        return self.net(x)\n";
    return rewritten_text({.above = "import nets\n",
                           .net = "getattr(nets, opt.arch)().cuda()",
                           .loss = "(model(x) - model(y)).mean()"},
                          {{"nets.py", nets}});
  };
  EXPECT_TOLD(text("nn.BatchNorm1d(2)"), "broadcast_buffers=False");
  EXPECT_SILENT(text("nn.LayerNorm(2)"), "broadcast_buffers=False");
}

// What a lookup of data gives is no class, and a registry that nobody asks makes none.
TEST(ToDdpLookedUp, LeavesLookAlikesAlone) {
  const std::string gan = kHead + trainer("GanTrainer");
  for (const char* script :
       {"from trainers import gan_trainer\nids = eval(opt.gpu_ids)\nprint(ids)\n",
        "from trainers.gan_trainer import GanTrainer\nrate = getattr(opt, name)\nprint(rate)\n",
        "from trainers.gan_trainer import GanTrainer\nprint(GanTrainer.__dict__[name])\n",
        "import importlib\nlog = importlib.import_module('writers.' + name).Writer('out')\n"})
    expect_left_alone({{"train.py", script},
                       {"trainers/gan_trainer.py", gan},
                       {"writers/plain.py", "class Writer:\n    pass\n"}});
}

Files data_of_family() {
  return {{"data/__init__.py",
           "from torch.utils.data import DataLoader\n"
           "from data.images import Images\n"
           "def create_dataset(opt):\n"
           "    return CustomDatasetDataLoader(opt)\n"
           "class CustomDatasetDataLoader:\n"
           "    def __init__(self, opt):\n"
           "        self.dataset = Images(opt)\n"
           "        self.dataloader = DataLoader(self.dataset, batch_size=opt.batch_size,\n"
           "                                     shuffle=not opt.serial_batches)\n"
           "    def __iter__(self):\n"
           "        for item in self.dataloader:\n"
           "            yield item\n"},
          {"data/images.py",
           "from torch.utils.data import Dataset\n"
           "class Images(Dataset):\n"
           "    def __init__(self, opt):\n"
           "        self.items = opt.items\n"
           "    def __getitem__(self, index):\n"
           "        return self.items[index]\n"
           "    def __len__(self):\n"
           "        return len(self.items)\n"}};
}

Files networks_of_family() {
  return {{"models/networks.py",
           "import torch\n"
           "import torch.nn as nn\n"
           "def init_weights(net, gain=0.02):\n"
           "    def init_func(m):\n"
           "        nn.init.normal_(m.weight.data, 0.0, gain)\n"
           "    net.apply(init_func)\n"
           "def init_net(net, gain=0.02, gpu_ids=[]):\n"
           "    if len(gpu_ids) > 0:\n"
           "        net.to(gpu_ids[0])\n"
           "        net = torch.nn.DataParallel(net, gpu_ids)\n"
           "    init_weights(net, gain)\n"
           "    return net\n"
           "def define_G(opt, gpu_ids=[]):\n"
           "    net = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1))\n"
           "    return init_net(net, 0.02, gpu_ids)\n"},
          {"models/one_model.py",
           "import torch\n"
           "from . import networks\n"
           "from .base_model import BaseModel\n"
           "class OneModel(BaseModel):\n"
           "    def __init__(self, opt):\n"
           "        BaseModel.__init__(self, opt)\n"
           "        self.model_names = ['G']\n"
           "        self.netG = networks.define_G(opt, self.gpu_ids)\n"
           "        self.optimizer = torch.optim.Adam(self.netG.parameters())\n"
           "    def set_input(self, item):\n"
           "        self.real = item.to(self.device)\n"
           "    def optimize_parameters(self):\n"
           "        self.optimizer.zero_grad()\n"
           "        self.loss = self.netG(self.real).mean()\n"
           "        self.loss.backward()\n"
           "        self.optimizer.step()\n"}};
}

// The family of pix2pix: what has to be a BaseModel is looked for in a file's names.
Files family() {
  Files out = {
      {"train.py",
       "from models import create_model\n"
       "from data import create_dataset\n"
       "model = create_model(opt)\n"
       "dataset = create_dataset(opt)\n"
       "for epoch in range(9):\n"
       "    for item in dataset:\n"
       "        model.set_input(item)\n"
       "        model.optimize_parameters()\n"
       "    model.save_networks('latest')\n"},
      {"models/__init__.py",
       "import importlib\n"
       "from models.base_model import BaseModel\n"
       "def find_model_using_name(name):\n"
       "    lib = importlib.import_module('models.' + name + '_model')\n"
       "    model = None\n"
       "    for key, cls in lib.__dict__.items():\n"
       "        if key.lower() == name + 'model' and issubclass(cls, BaseModel):\n"
       "            model = cls\n"
       "    return model\n"
       "def create_model(opt):\n"
       "    model = find_model_using_name(opt.model)\n"
       "    instance = model(opt)\n"
       "    return instance\n"},
      {"models/base_model.py",
       "import os\n"
       "import torch\n"
       "class BaseModel:\n"
       "    def __init__(self, opt):\n"
       "        self.gpu_ids = opt.gpu_ids\n"
       "        self.device = torch.device('cuda:{}'.format(self.gpu_ids[0]))\n"
       "    def optimize_parameters(self):\n"
       "        pass\n"
       "    def save_networks(self, epoch):\n"
       "        for name in self.model_names:\n"
       "            net = getattr(self, 'net' + name)\n"
       "            if len(self.gpu_ids) > 0:\n"
       "                torch.save(net.module.cpu().state_dict(), '%s_net_%s.pth' % (epoch, "
       "name))\n"
       "                net.cuda(self.gpu_ids[0])\n"}};
  out.merge(networks_of_family());
  out.merge(data_of_family());
  return out;
}

TEST(ToDdpLookedUp, RewritesModelsThatAreFoundByTheirFile) {
  const Rewrite made = rewritten(family());
  ASSERT_EQ(made.refusal, "");
  const std::string& networks = made.texts.at("models/networks.py");
  EXPECT_TRUE(says(networks, "if dist.is_initialized() or len(gpu_ids) > 0:")) << networks;
  EXPECT_TRUE(says(networks, "net = DistributedDataParallel(net.to(")) << networks;
  EXPECT_TRUE(says(networks, "else torch.nn.DataParallel(net, gpu_ids)")) << networks;
  const std::string& base = made.texts.at("models/base_model.py");
  EXPECT_TRUE(says(base, "net.cuda(torch.cuda.current_device() if \"LOCAL_RANK\"")) << base;
  EXPECT_TRUE(says(base, "get_rank() == 0")) << base;
  EXPECT_TRUE(says(made.texts.at("data/__init__.py"), "DistributedSampler(self.dataset"));
}

// init_net draws the weights anew behind the wrapper, and each rank would keep its own.
TEST(ToDdpLookedUp, SendsWeightsThatAreDrawnBelowTheWrapper) {
  const Rewrite made = rewritten(family());
  EXPECT_TRUE(says(made.texts.at("models/networks.py"),
                   "    net.apply(init_func)\n"
                   "    if isinstance(net, torch.nn.parallel.DistributedDataParallel):\n"
                   "        for weight in net.state_dict().values():\n"
                   "            torch.distributed.broadcast(weight, 0)\n"))
      << made.texts.at("models/networks.py");
  EXPECT_SILENT(listed(made.left), "weights are drawn");
  Files seeded = family();  // all ranks draw the same
  seeded["train.py"] = "import torch\ntorch.manual_seed(3)\n" + seeded["train.py"];
  EXPECT_FALSE(says(rewritten(seeded).texts.at("models/networks.py"), "broadcast(weight"));
}

// A script of the family that trains nothing stays as it is.
TEST(ToDdpLookedUp, LeavesTheTestOfTheFamilyAlone) {
  Files files = family();
  files["train.py"] =
      "import torch\n"
      "from models import create_model\n"
      "from data import create_dataset\n"
      "model = create_model(opt)\n"
      "with torch.no_grad():\n"
      "    for item in create_dataset(opt):\n"
      "        model.set_input(item)\n"
      "        show(model.netG(model.real))\n";
  expect_left_alone(files);
}

// LOADERS[args.code]: whichever class a run picks, the loader of its training is shared out.
TEST(ToDdpLookedUp, SharesOutTheLoadersOfAllClassesOfATable) {
  const auto cls = [](const std::string& name) {
    return "class " + name +
           ":\n"
           "    def __init__(self, args):\n"
           "        self.args = args\n"
           "    def loaders(self):\n"
           "        return self.train_loader(), self.val_loader()\n"
           "    def train_loader(self):\n"
           "        data = read('" +
           name +
           "')\n"
           "        return DataLoader(data, batch_size=self.args.batch_size, shuffle=True)\n"
           "    def val_loader(self):\n"
           "        data = read('val')\n"
           "        return DataLoader(data, batch_size=self.args.batch_size)\n";
  };
  const Rewrite made =
      rewritten({{"loaders.py", "from torch.utils.data import DataLoader\n" + cls("A") + cls("B") +
                                    "TABLE = {'a': A, 'b': B}\n"
                                    "def make(args):\n"
                                    "    picked = TABLE[args.code](args)\n"
                                    "    return picked.loaders()\n"},
                 {"train.py",
                  "import argparse\n"
                  "import torch\n"
                  "from torch import nn\n"
                  "from loaders import make\n"
                  "parser = argparse.ArgumentParser()\n"
                  "parser.add_argument('--code', default='a')\n"
                  "parser.add_argument('--batch_size', type=int, default=64)\n"
                  "args = parser.parse_args()\n"
                  "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                  "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                  "loader, val_loader = make(args)\n"
                  "for epoch in range(9):\n"
                  "    for x, y in loader:\n"
                  "        loss = nn.functional.cross_entropy(model(x), y)\n"
                  "        optimizer.zero_grad()\n"
                  "        loss.backward()\n"
                  "        optimizer.step()\n"}});
  ASSERT_TRUE(made.texts.contains("loaders.py"));
  const std::string& text = made.texts.at("loaders.py");
  std::size_t shared = 0;
  for (std::size_t at = text.find("DistributedSampler(data)"); at != std::string::npos;
       at = text.find("DistributedSampler(data)", at + 1))
    ++shared;
  EXPECT_EQ(shared, 2U) << text;  // and neither of those for validation
}

}  // namespace
}  // namespace bench::diagnose
