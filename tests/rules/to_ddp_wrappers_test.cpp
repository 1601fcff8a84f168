// What bench diagnose --to-ddp makes of wrappers in special places, of files that others import,
// and of options for the GPU.
#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

std::string script_of(const Script& script, Files others = {}) {
  others["train.py"] = script.text();
  const Rewrite made = rewritten(others);
  const auto found = made.texts.find("train.py");
  return found == made.texts.end() ? std::string() : found->second;
}

std::string launch_of(const Script& script) {
  return rewritten({{"train.py", script.text()}}).launch;
}

// A file that others import, whose main() trains.
std::string imported_script(const std::string& above, const std::string& in_main) {
  return "import torch\nfrom torch import nn\n"
         "from torch.utils.data import DataLoader\n" +
         above + "def main():\n    model = nn.Linear(8, 2).cuda()\n" + in_main +
         "    model = nn.DataParallel(model)\n"
         "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
         "    for epoch in range(9):\n"
         "        for x, y in loader:\n"
         "            optimizer.zero_grad()\n"
         "            nn.functional.cross_entropy(model(x), y).backward()\n"
         "            optimizer.step()\n"
         "if __name__ == '__main__':\n    main()\n";
}

TEST(ToDdpWrappers, JoinsInMainWhereTheFileOnlyTakesAGpuAbove) {
  const std::string loader = "loader = DataLoader(data, batch_size=64, shuffle=True)\n";
  const Files files = {
      {"train.py", imported_script("MEAN = torch.ones(3).cuda()\n", "    " + loader)}};
  const Rewrite made = rewritten(files);
  const std::string& text = made.texts.at("train.py");
  EXPECT_TOLD(text,
              "if \"LOCAL_RANK\" in os.environ:\n    torch.cuda.set_device(local_rank)\n"
              "MEAN = torch.ones(3).cuda()\n");
  EXPECT_TOLD(text, "\n    dist.init_process_group(\"nccl\")\n    loader = ");
  EXPECT_TOLD(text, "\n    dist.destroy_process_group()\n");
  // The group itself is asked for above.
  const Rewrite early = rewritten({{"train.py", imported_script(loader, "")}});
  EXPECT_TOLD(early.texts.at("train.py"), "dist.init_process_group(\"nccl\")\nloader = ");
}

TEST(ToDdpWrappers, KnowsLayersThatRunOnBothWays) {
  const std::string unused = "not all may get one";
  const auto net = [](const std::string& forward) {
    return "class Two(nn.Module):\n"
           "    def __init__(self):\n"
           "        super().__init__()\n"
           "        self.body = nn.Linear(8, 8)\n"
           "        self.head = nn.Linear(8, 2)\n"
           "        self.loss = nn.MSELoss()\n"
           "        self.up = nn.PixelShuffle(2)\n"
           "    def forward(self, x, y=None, features=False):\n"
           "        x = self.body(x)\n" +
           forward;
  };
  const auto left = [&](const std::string& forward) {
    return told({.above = net(forward), .net = "Two().cuda()"});
  };
  EXPECT_SILENT(left("        if features:\n            return x, self.head(x)\n"
                     "        return self.head(x)\n"),
                unused);
  EXPECT_SILENT(left("        if features:\n            x = self.head(x)\n"
                     "        else:\n            x = 2 * self.head(x)\n"
                     "        return x\n"),
                unused);
  EXPECT_SILENT(left("        x = self.head(x)\n        if features:\n            x = self.up(x)\n"
                     "        if y is not None:\n            return self.loss(x, y)\n"
                     "        return x\n"),
                unused);
  EXPECT_TOLD(left("        if features:\n            x = self.head(x)\n        return x\n"),
              unused);
}

TEST(ToDdpWrappers, LaunchesWithWhatPutsTheModelOnTheGpu) {
  const std::string head =
      "import argparse\nparser = argparse.ArgumentParser()\n"
      "parser.add_argument('--cuda', action='store_true')\n"
      "parser.add_argument('--gpu_cache', action='store_true')\n"
      "parser.add_argument('--test_gpu', action='store_true')\n"
      "args = parser.parse_args()\n";
  EXPECT_TRUE(launch_of({.above = head,
                         .net = "Net()\nif args.cuda:\n    model = model.cuda()",
                         .before = "if args.gpu_cache:\n    data = data.cuda()\n"})
                  .ends_with("train.py --cuda"));
  EXPECT_TRUE(launch_of({.above = head + "def main():\n    if args.test_gpu:\n"
                                         "        torch.zeros(1).cuda()\n        return\nmain()\n"})
                  .ends_with("train.py"));
}

TEST(ToDdpWrappers, TellsModelsOfWhichOnlyAPartIsWrapped) {
  const std::string part = "`model` is trained as a whole, and only a part of it is in a wrapper";
  const std::string two =
      "class Two(nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.body = BODY\n"
      "        self.head = HEAD\n"
      "    def forward(self, x):\n"
      "        return self.head(self.body(x))\n";
  const auto with = [&](std::string body, std::string head) {
    std::string out = two;
    out.replace(out.find("BODY"), 4, body);
    return out.replace(out.find("HEAD"), 4, head);
  };
  EXPECT_TOLD(told({.above = with("Net()", "nn.Linear(2, 2)"),
                    .net = "Two().cuda()",
                    .wrap = "model.body = nn.DataParallel(model.body)\n"}),
              part);
  EXPECT_TOLD(told({.above = "import parts\n",
                    .net = "parts.MODELS[name]()",
                    .wrap = "if name.startswith('vgg'):\n"
                            "    model.features = nn.DataParallel(model.features)\n"
                            "else:\n"
                            "    model = nn.DataParallel(model)\n"}),
              part);
  const std::string within = told({.above = with("nn.DataParallel(Net())", "nn.Linear(2, 2)"),
                                   .net = "Two().cuda()",
                                   .wrap = ""});
  EXPECT_TOLD(within, part);
  EXPECT_SILENT(within, "Wrap it in DistributedDataParallel, too");
  EXPECT_TOLD(
      told({.above = with("nn.DataParallel(Net())", "nn.Linear(2, 2)"), .net = "Two().cuda()"}),
      "this wraps a part of `model`, which is wrapped as a whole, too");
  // All that has parameters is wrapped.
  EXPECT_SILENT(told({.above = with("nn.DataParallel(Net())", "nn.ReLU()"),
                      .net = "Two().cuda()",
                      .wrap = ""}),
                part);
}

TEST(ToDdpWrappers, KnowsWrappersThatAreMadeOnce) {
  const std::string again = "this wraps what it has wrapped in the round before";
  const std::string loop = "for turn in range(3):\n";
  EXPECT_TOLD(told({.wrap = loop + "    model = nn.DataParallel(model)\n"}), again);
  EXPECT_TOLD(told({.wrap = loop + "    model = model.cuda()\n"
                                   "    model = nn.DataParallel(model)\n"}),
              again);
  EXPECT_SILENT(told({.wrap = loop + "    model = nn.DataParallel(model)\n    fit(model)\n"
                                     "    model = model.module\n"}),
                again);
  EXPECT_SILENT(told({.wrap = loop + "    model = getattr(nets, names[turn])\n"
                                     "    model = nn.DataParallel(model)\n"}),
                again);
  EXPECT_SILENT(told({.wrap = "done = False\n" + loop +
                              "    if not done:\n        model = nn.DataParallel(model)\n"
                              "        done = True\n"}),
                again);
}

TEST(ToDdpWrappers, KnowsMethodsThatRunALoss) {
  const std::string passed = "not to the wrapper's forward";
  const auto net = [](const std::string& method) {
    return "class Own(Net):\n"
           "    def __init__(self):\n"
           "        super().__init__()\n"
           "        self.criterion = nn.CrossEntropyLoss()\n"
           "        self.head = nn.Linear(2, 2)\n"
           "    def total(self, out, y):\n"
           "        return self." +
           method + "(out, y)\n";
  };
  EXPECT_SILENT(told({.above = net("criterion"),
                      .net = "Own().cuda()",
                      .loss = "model.module.total(model(x), y)"}),
                passed);
  EXPECT_TOLD(
      told(
          {.above = net("head"), .net = "Own().cuda()", .loss = "model.module.total(model(x), y)"}),
      passed);
}

TEST(ToDdpWrappers, KnowsParametersOfABatch) {
  EXPECT_SILENT(told({.above = "def attack(model, x, y):\n"
                               "    delta = nn.Parameter(torch.zeros_like(x))\n"
                               "    steps = torch.optim.SGD([delta], lr=0.1)\n"
                               "    for _ in range(7):\n"
                               "        steps.zero_grad()\n"
                               "        (-model(x + delta).mean()).backward()\n"
                               "        steps.step()\n"
                               "    return x + delta\n",
                      .loss = "model(attack(model, x, y)).mean()"}),
                "beside the wrapped model");
}

TEST(ToDdpWrappers, FindsHeadsBehindCalls) {
  const std::string bare = "`head` is trained without a wrapper";
  EXPECT_TOLD(told({.above = "def flat(lists):\n    return [p for each in lists for p in each]\n"
                             "head = Net()\n",
                    .before = "both = torch.optim.Adam("
                              "flat([model.parameters(), head.parameters()]))\n"}),
              bare);
  EXPECT_TOLD(told({.above = "class Head(nn.Module):\n"
                             "    def __init__(self):\n"
                             "        super().__init__()\n"
                             "        self.fc = nn.Linear(2, 2)\n"
                             "    def trainable(self):\n"
                             "        return [p for p in self.parameters() if p.requires_grad]\n"
                             "head = Head()\n",
                    .before = "both = torch.optim.Adam(head.trainable())\n"}),
              bare);
  EXPECT_TOLD(told({.above = "import losses\n",
                    .before = "criterion = losses.Proxies(9)\n"
                              "both = torch.optim.Adam(criterion.parameters())\n"}),
              "which refuses it where it has none");
}

TEST(ToDdpWrappers, KnowsWhatPutsNothingOnTheGpuAtImport) {
  const std::string early = "this runs where the file is imported";
  const auto left = [](const std::string& parts) {
    return told({.above = "import parts\n"},
                {{"parts.py", "import torch\nfrom torch import nn\n" + parts}});
  };
  EXPECT_SILENT(left("device = 'cpu'\nMEAN = torch.ones(3).to(device)\n"
                     "STD = torch.ones(3, device=torch.device('cpu'))\n"),
                early);
  EXPECT_SILENT(left("metric = nn.CrossEntropyLoss().cuda()\ntorch.zeros(1).cuda()\n"), early);
  EXPECT_SILENT(left("class Engine:\n    def __init__(self, device='cuda'):\n"
                     "        self.device = device\nENGINE = Engine(device='cuda')\n"),
                early);
  EXPECT_TOLD(left("class Engine:\n    eye = torch.eye(3).cuda()\nENGINE = Engine()\n"), early);
}

TEST(ToDdpWrappers, KeepsTextBehindTheNumberOfTheGpu) {
  const std::string head =
      "import argparse\nparser = argparse.ArgumentParser()\n"
      "parser.add_argument('--gpu', default='0')\nargs = parser.parse_args()\n";
  for (const std::string name : {"f'cuda:{args.gpu}/memory'", "'cuda:{}/epoch'.format(args.gpu)",
                                 "'cuda:%s/x' % args.gpu", "'cuda:' + args.gpu + '/x'"})
    EXPECT_TOLD(script_of({.above = head + "name = " + name + "\n"}), "name = " + name + "\n");
}

TEST(ToDdpWrappers, LeavesRunsOnTheCpuAlone) {
  const std::string hidden = "    os.environ['CUDA_VISIBLE_DEVICES'] = ''\n";
  const Script script{.above = "if args.cpu:\n" + hidden +
                               "else:\n    os.environ['CUDA_VISIBLE_DEVICES'] = args.gpus\n"};
  EXPECT_TOLD(script_of(script), "if args.cpu:\n" + hidden + "else:\n    pass\n");
  EXPECT_SILENT(told(script), "chooses its GPUs itself");
  const std::string spread = "this module is given a list of GPUs";
  const std::string net =
      "class Spread(nn.Module):\n    def __init__(self, gpu_ids=()):\n"
      "        super().__init__()\n        self.fc = nn.Linear(8, 2)\n"
      "    def forward(self, x):\n        return self.fc(x)\n";
  EXPECT_SILENT(told({.above = net, .net = "Spread(gpu_ids=[]).cuda()"}), spread);
  EXPECT_TOLD(told({.above = net, .net = "Spread(gpu_ids=[0, 1]).cuda()"}), spread);
}

TEST(ToDdpWrappers, KeepsWhatOnlyLoadsOnTheGpuOfTheRank) {
  EXPECT_TOLD(script_of({.above = "def loaded(path):\n"
                                  "    net = nn.Linear(8, 2)\n"
                                  "    net = nn.DataParallel(net)\n"
                                  "    net.load_state_dict(torch.load(path))\n"
                                  "    net = net.module\n"
                                  "    return net\n",
                         .net = "loaded('w.pt')"}),
              "net = nn.DataParallel(net, device_ids=[local_rank])\n");
}

TEST(ToDdpWrappers, KeepsBuffersOnlyForPassesBehindTheLoss) {
  EXPECT_SILENT(script_of({.above = "class Norm(nn.Module):\n"
                                    "    def __init__(self):\n"
                                    "        super().__init__()\n"
                                    "        self.bn = nn.BatchNorm1d(8)\n"
                                    "    def forward(self, x):\n"
                                    "        return self.bn(x)\n"
                                    "def accuracy(net, batches):\n"
                                    "    right = 0\n"
                                    "    for x, y in batches:\n"
                                    "        right += (net(x).argmax(1) == y).sum().item()\n"
                                    "    return right\n"
                                    "held = DataLoader(rest, batch_size=64)\n",
                           .net = "Norm().cuda()",
                           .loss = "model(x).mean()\n        accuracy(model, held)"}),
                "broadcast_buffers");
}

TEST(ToDdpWrappers, TellsWhatTheWrapperHasNotInFunctionsThatAreHandedIt) {
  const std::string missing = "`net` is the wrapper here";
  const auto left = [](const std::string& use) {
    return told({.above = "class Own(Net):\n"
                          "    def __init__(self):\n"
                          "        super().__init__()\n"
                          "        self.kind = 'own'\n"
                          "def save(net):\n" +
                          use,
                 .net = "Own().cuda()",
                 .wrap = "if args.multi_gpu:\n    model = nn.DataParallel(model)\n",
                 .behind = "    save(model)\n"});
  };
  EXPECT_TOLD(left("    state = net.module.state_dict() if args.multi_gpu else net.state_dict()\n"
                   "    print(net.kind, state)\n"),
              missing);
  EXPECT_SILENT(left("    print(net.training)\n"), missing);
  EXPECT_SILENT(left("    net = net.module\n    print(net.kind)\n"), missing);
  EXPECT_SILENT(left("    if hasattr(net, 'kind'):\n        print(net.kind)\n"), missing);
}

TEST(ToDdpWrappers, TellsParametersThatTheFirstBatchSets) {
  const std::string first = "from the first batch that it sees";
  const auto norm = [](const std::string& made, const std::string& condition) {
    return "class ActNorm(nn.Module):\n"
           "    def __init__(self):\n"
           "        super().__init__()\n"
           "        self.bias = " +
           made +
           "\n"
           "        self.register_buffer('initialized', torch.tensor(0))\n"
           "        self.scale = nn.Parameter(torch.ones(2))\n"
           "    def forward(self, x):\n"
           "        if " +
           condition +
           ":\n"
           "            self.bias.data.copy_(-x.mean(0))\n"
           "        return self.scale * x + self.bias\n";
  };
  const auto left = [&](const std::string& made, const std::string& condition) {
    return told({.above = norm(made, condition), .net = "nn.Sequential(Net(), ActNorm())"});
  };
  EXPECT_TOLD(left("nn.Parameter(torch.zeros(2))", "not self.initialized"), first);
  EXPECT_SILENT(left("nn.Parameter(torch.zeros(2))", "self.reset"), first);
  // DDP sends buffers before each pass.
  EXPECT_SILENT(left("torch.zeros(2)", "not self.initialized"), first);
}

TEST(ToDdpWrappers, TellsBranchesWithoutAWrapper) {
  const std::string bare = "`model` stays without a wrapper where this is chosen";
  const auto left = [](const std::string& condition, const std::string& below) {
    return told({.wrap = "if " + condition +
                         ":\n    model = Net().cuda()\n"
                         "else:\n    model = Net()\n    model = nn.DataParallel(model)\n" +
                         below});
  };
  EXPECT_TOLD(left("args.network == 'small'", ""), bare);
  EXPECT_SILENT(left("args.evaluate", ""), bare);
  EXPECT_SILENT(left("args.network == 'small'", "model = nn.DataParallel(model)\n"), bare);
}

TEST(ToDdpWrappers, ChoosesGpusElsewhereOnlyWithoutALauncher) {
  const Script script{.above = "import conf\nconf.Conf.of(args)\n"};
  const Rewrite made = rewritten({{"train.py", script.text()},
                                  {"conf.py",
                                   "import os\n"
                                   "class Conf:\n"
                                   "    @classmethod\n"
                                   "    def of(cls, args):\n"
                                   "        os.environ['CUDA_VISIBLE_DEVICES'] = args.device\n"
                                   "        return cls()\n"}});
  EXPECT_TOLD(made.texts.at("conf.py"),
              "        if \"LOCAL_RANK\" not in os.environ:\n"
              "            os.environ['CUDA_VISIBLE_DEVICES'] = args.device\n");
  EXPECT_SILENT(listed(made.left), "chooses its GPUs itself");
}

TEST(ToDdpWrappers, TakesTheGpuOfTheRankForOneOfAList) {
  const std::string text =
      script_of({.above = "gpu = args.device[0] if type(args.device) is list else args.device\n"
                          "import argparse\nparser = argparse.ArgumentParser()\n"
                          "parser.add_argument('--device', type=int, default=0, nargs='+')\n"
                          "args = parser.parse_args()\n"
                          "with torch.cuda.device(gpus[0]):\n    print('made')\n",
                 .net = "Net().cuda(gpu)",
                 .wrap = "if type(args.device) is list:\n    if len(args.device) > 1:\n"
                         "        model = nn.DataParallel(model)\n"});
  EXPECT_TOLD(text, "model = Net().cuda(local_rank)\n");
  EXPECT_TOLD(text, "with torch.cuda.device(local_rank):\n");
  EXPECT_TOLD(text, "if dist.is_initialized():\n    if dist.is_initialized():\n");
}

TEST(ToDdpWrappers, SaysHowToRewriteAWrapperThatOnlyPassesOn) {
  const auto refusal = [](const std::string& methods) {
    return rewritten({{"train.py", Script{.above = "class Own(nn.DataParallel):\n" + methods,
                                          .wrap = "model = Own(model)\n"}
                                       .text()}})
        .refusal;
  };
  const std::string passes = "a DataParallel that only passes attributes on";
  const std::string look_up =
      "    def __getattr__(self, name):\n        return getattr(self.module, name)\n";
  EXPECT_TOLD(refusal(look_up), passes);
  EXPECT_TOLD(refusal(look_up), "(line 11) from torch.nn.parallel.DistributedDataParallel");
  EXPECT_SILENT(refusal(look_up + "    def scatter(self, inputs, kwargs, ids):\n"
                                  "        return inputs, kwargs\n"),
                passes);
}

TEST(ToDdpWrappers, SaysHowToReplaceACopyOfDataParallel) {
  const auto refusal = [](const std::string& base, const std::string& forward) {
    Files files;
    files["data_parallel.py"] =
        "from torch.nn import DataParallel as Torch\n"
        "from torch.nn.modules import Module\n"
        "class DataParallel(" +
        base +
        "):\n"
        "    def __init__(self, module):\n"
        "        super().__init__()\n"
        "        self.module = module\n"
        "    def forward(self, *inputs, **kwargs):\n" +
        forward;
    Script script{.above = "from data_parallel import DataParallel\n",
                  .wrap = "model = DataParallel(model)\n"};
    files["train.py"] = script.text();
    return rewritten(files).refusal;
  };
  const std::string whole = "        return self.module(*inputs[0], **kwargs)\n";
  const std::string cut =
      "        inputs, kwargs = self.scatter(inputs, kwargs, self.ids)\n" + whole;
  const std::string copy = "that is not PyTorch's: wrap in DistributedDataParallel in its place";
  EXPECT_TOLD(refusal("Module", whole), copy);
  EXPECT_TOLD(refusal("Module", whole), "It scatters nothing: its caller makes a batch for each");
  EXPECT_TOLD(refusal("Module", cut), "let each rank load the part that it scatters");
  EXPECT_SILENT(refusal("Module", "        return self.module(*inputs)\n"), "scatters");
  EXPECT_TOLD(refusal("Torch", cut), "no gradient would be averaged), and let each rank load the");
  EXPECT_TOLD(refusal("Torch", "        self.gpu0_bsz = 2\n" + cut), "an equal share of the batch");
}

TEST(ToDdpWrappers, TellsDevicesThatConfigurationsSet) {
  const std::string unseen = "is set where no code of the script is seen to do so";
  EXPECT_TOLD(
      told({.before = "config = load('c.py')\n", .loss = "model(x.to(config.device)).mean()"}),
      "`config.device` " + unseen);
  EXPECT_SILENT(told({.loss = "model(x.to(y.device)).mean()"}), unseen);
}

TEST(ToDdpWrappers, FindsModelsBehindMethodsOfOneOfSeveral) {
  EXPECT_TOLD(told({.above = "class Critic:\n"
                             "    def __init__(self, net):\n"
                             "        self.net = net\n"
                             "    def weights(self):\n"
                             "        return list(self.net.parameters())\n"
                             "class Nothing:\n"
                             "    def weights(self):\n"
                             "        return []\n",
                    .before = "base = Critic(Net()) if args.critic else Nothing()\n"
                              "both = torch.optim.Adam([{'params': model.parameters()},\n"
                              "                         {'params': base.weights()}])\n"}),
              "`self.net` is trained without a wrapper");
}

TEST(ToDdpWrappers, KeepsTheChoiceOfOtherFilesWithoutALauncher) {
  const Script script{.above = "import parts\n", .net = "parts.placed(Net(), gpus)"};
  const Rewrite made = rewritten({{"train.py", script.text()},
                                  {"parts.py",
                                   "import torch\n"
                                   "def placed(net, gpus):\n"
                                   "    device = torch.device('cuda:%d' % gpus[0])\n"
                                   "    return net.to(device)\n"}});
  EXPECT_TOLD(made.texts.at("parts.py"),
              "torch.device(\"cuda\") if \"LOCAL_RANK\" in os.environ else "
              "torch.device('cuda:%d' % gpus[0])\n");
}

TEST(ToDdpWrappers, AsksForTheWrapperByItsOwnName) {
  const std::string frozen =
      "teacher = Net()\nfor p in teacher.parameters():\n    p.requires_grad = False\n"
      "teacher = nn.DataParallel(teacher)\n";
  const Script script{.above = "import parts\n", .before = frozen};
  EXPECT_SILENT(script_of(script, {{"parts.py",
                                    "def weights(teacher):\n"
                                    "    return teacher.state_dict()\n"}}),
                "DataParallel(teacher");
}

}  // namespace
}  // namespace bench::diagnose
