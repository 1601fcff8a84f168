// What bench diagnose --to-ddp does with models, parameters and devices beside the wrapped model.
#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

std::string script_of(const Script& script, Files others = {}) {
  others["train.py"] = script.text();
  const Rewrite made = rewritten(others);
  const auto found = made.texts.find("train.py");
  return found == made.texts.end() ? std::string() : found->second;
}

const std::string kHead =
    "class Head(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.w = nn.Parameter(torch.ones(2))\n"
    "    def forward(self, x):\n"
    "        return x * self.w\n";

TEST(ToDdpModels, TellsParametersBesideTheModel) {
  EXPECT_TOLD(told({.before = "codes = nn.Parameter(torch.zeros(9, 2))\n"
                              "both = torch.optim.Adam([{'params': model.parameters()},\n"
                              "                         {'params': codes}])\n"}),
              "`codes` is a parameter beside the wrapped model");
  EXPECT_SILENT(told({.above = kHead, .net = "nn.Sequential(Net(), Head())"}),
                "parameter beside the wrapped model");
}

TEST(ToDdpModels, TellsModulesThatReachAnOptimizerOnOtherWays) {
  const std::string trained = "`head` is trained without a wrapper";
  EXPECT_TOLD(told({.above = kHead,
                    .before = "head = Head()\nweights = list(model.parameters())\n"
                              "weights += list(head.parameters())\n"
                              "both = torch.optim.Adam(weights)\n"}),
              trained);
  EXPECT_TOLD(told({.above = kHead + "def decayed(net):\n"
                                     "    norms, rest = [], []\n"
                                     "    for layer in net.modules():\n"
                                     "        rest.extend(layer.parameters())\n"
                                     "    return norms, rest\n",
                    .before = "HEADS = {'a': Head(), 'b': Head()}\nhead = HEADS[name]\n"
                              "norms, rest = decayed(head)\n"
                              "both = torch.optim.Adam([{'params': norms + rest}])\n"}),
              trained);
  EXPECT_TOLD(told({.above = kHead,
                    .before = "head = Head()\n"
                              "both = config['kind']([{**{'params': head.parameters()}, 'lr': 1}])"
                              "\n"}),
              trained);
  EXPECT_TOLD(told({.above = "import losses\n",
                    .before = "criterion = losses.Proxies(9)\n"
                              "both = torch.optim.Adam(criterion.parameters())\n"}),
              "`criterion` is trained without a wrapper");
}

TEST(ToDdpModels, KnowsContainersAndPartsOfWhatIsWrapped) {
  const std::string bare = "trained without a wrapper";
  // All parts of the container have wrappers of their own.
  EXPECT_SILENT(told({.above = kHead,
                      .net = "nn.Module()\nmodel.body = Net()\nmodel.head = Head()",
                      .wrap = "model.body = nn.DataParallel(model.body)\n"
                              "model.head = nn.DataParallel(model.head)\n",
                      .loss = "model.head(model.body(x)).mean()"}),
                bare);
  // The wrapper's class was given them in a tuple.
  EXPECT_SILENT(told({.above = kHead + "class Whole(nn.Module):\n"
                                       "    def __init__(self, nets):\n"
                                       "        super().__init__()\n"
                                       "        self.body, self.head = nets\n"
                                       "    def forward(self, x):\n"
                                       "        return self.head(self.body(x))\n"
                                       "def optimizer_of(nets):\n"
                                       "    body, head = nets\n"
                                       "    return torch.optim.SGD([\n"
                                       "        {'params': body.fc.parameters()},\n"
                                       "        {'params': head.parameters()}], lr=0.1)\n"
                                       "body = Net()\nhead = Head()\nnets = (body, head)\n",
                      .net = "Whole(nets)",
                      .before = "optimizer = optimizer_of(nets)\n"}),
                bare);
}

TEST(ToDdpModels, TellsWrappersWithinWhatIsTrained) {
  const std::string left = told({.above = "class Outer(nn.Module):\n"
                                          "    def __init__(self):\n"
                                          "        super().__init__()\n"
                                          "        self.inner = Net()\n"
                                          "        self.head = nn.Linear(2, 2)\n"
                                          "        self.inner = nn.DataParallel(self.inner)\n"
                                          "    def forward(self, x):\n"
                                          "        return self.head(self.inner(x))\n",
                                 .net = "Outer().cuda()",
                                 .wrap = ""});
  EXPECT_TOLD(left, "`model` is trained as a whole, and only a part of it is in a wrapper");
  EXPECT_SILENT(left, "trained without a wrapper");
}

TEST(ToDdpModels, NamesTheGpuOfTheRankWhateverTheScriptChose) {
  const std::string option =
      "import argparse\nparser = argparse.ArgumentParser()\n"
      "parser.add_argument('--gpu', default='0')\n"
      "args = parser.parse_args()\n";
  for (const std::string text : {"f'cuda:{args.gpu}'", "'cuda:' + args.gpu", "'cuda:%s' % args.gpu",
                                 "'cuda:{}'.format(args.gpu)"})
    EXPECT_TOLD(script_of({.above = option + "device = " + text + "\n", .net = "Net().to(device)"}),
                "device = f\"cuda:{local_rank}\"\n");
  const std::string several = "devices = [f'cuda:{i}' for i in range(2)]\n";
  EXPECT_TOLD(script_of({.above = several}), several);
  const std::string shown = "print('cuda:%s' % args.gpu)\n";
  EXPECT_TOLD(script_of({.above = option + shown}), shown);
  EXPECT_TOLD(script_of({.above = option + "torch.cuda.set_device(int(args.gpu.split(',')[0]))\n"}),
              "args = parser.parse_args()\ntorch.cuda.set_device(local_rank)\n");
}

TEST(ToDdpModels, JoinsAboveWhatTakesAGpu) {
  for (const std::string use :
       {"torch.set_default_tensor_type('torch.cuda.FloatTensor')",
        "scale = torch.cuda.FloatTensor(3)", "scale = torch.ones(3, device=device)"})
    EXPECT_TOLD(script_of({.above = "device = 'cuda'\n" + use + "\nprint('made')\n"}),
                "dist.init_process_group(\"nccl\")\n" + use + "\n");
  EXPECT_TOLD(told({.above = "import parts\n"}, {{"parts.py",
                                                  "import torch\n"
                                                  "scale = torch.ones(3).cuda()\n"}}),
              "parts.py:2: this runs where the file is imported");
  EXPECT_SILENT(told({.above = "import parts\n"}, {{"parts.py",
                                                    "import torch\n"
                                                    "device = torch.device('cuda')\n"}}),
                "this runs where the file is imported");
}

TEST(ToDdpModels, RemovesTheChoiceOfGpusUnderAnOption) {
  const std::string made =
      script_of({.above = "if args.gpu:\n    os.environ['CUDA_VISIBLE_DEVICES'] = args.gpu\n"});
  EXPECT_TOLD(made, "if args.gpu:\n    pass\n");
  // Of a script that has been given ranks before.
  const std::string own = "os.environ['CUDA_VISIBLE_DEVICES'] = os.environ['LOCAL_RANK']\n";
  EXPECT_TOLD(script_of({.above = own}), own);
}

TEST(ToDdpModels, KeepsWhatNothingTrainsOnTheGpuOfTheRank) {
  const std::string judge =
      "def judge_of(parallel):\n"
      "    judge = Net().eval()\n"
      "    if parallel:\n"
      "        judge = nn.DataParallel(judge)\n"
      "    return judge\n";
  const Script script{.above = judge, .before = "judge = judge_of(True)\n"};
  EXPECT_TOLD(script_of(script), "judge = nn.DataParallel(judge, device_ids=[local_rank])\n");
  EXPECT_SILENT(told(script), "still DataParallel");
  // What it is made for is trained in the end.
  EXPECT_SILENT(script_of({.above = judge,
                           .before = "judge = judge_of(True)\n"
                                     "other = torch.optim.Adam(judge.parameters())\n"}),
                "DataParallel(judge, device_ids=[local_rank])\n    return");
  // A copy that only loads.
  EXPECT_TOLD(script_of({.above = "def body_of(weights):\n"
                                  "    whole = Net()\n"
                                  "    whole = nn.DataParallel(whole)\n"
                                  "    whole.load_state_dict(weights)\n"
                                  "    return whole.module.fc\n",
                         .before = "body = body_of(torch.load('w.pt'))\n"}),
              "whole = nn.DataParallel(whole, device_ids=[local_rank])\n");
}

TEST(ToDdpModels, KeepsLossesOutOfSightOnTheGpuOfTheRank) {
  const std::string loss =
      "criterion = losses.pick(name)\ncriterion = nn.DataParallel(criterion)\n";
  EXPECT_TOLD(script_of({.above = "import losses\n", .before = loss}),
              "criterion = nn.DataParallel(criterion, device_ids=[local_rank])\n");
  EXPECT_TOLD(script_of({.above = "import losses\n",
                         .before = loss + "o = torch.optim.Adam(criterion.parameters())\n"}),
              "criterion = DistributedDataParallel(criterion");
  EXPECT_TOLD(script_of({.above = "import parts\n", .net = "parts.ModelWithLoss(net, loss)"}),
              "model = DistributedDataParallel(model");
}

TEST(ToDdpModels, KeepsTheWrapperOfFrozenModelsThatIsAskedFor) {
  const std::string teacher =
      "teacher = Net()\nfor p in teacher.parameters():\n    p.requires_grad = False\n"
      "teacher = nn.DataParallel(teacher)\n";
  EXPECT_TOLD(script_of({.before = teacher + "teacher.module.load_state_dict(torch.load('t'))\n"}),
              "teacher = nn.DataParallel(teacher, device_ids=[local_rank])\n");
  EXPECT_SILENT(script_of({.before = teacher}), "DataParallel(teacher");
}

TEST(ToDdpModels, KeepsBuffersWhereAModelRunsTwiceBeforeOneBackward) {
  const std::string kept = "broadcast_buffers=False";
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
  EXPECT_TOLD(script_of({.above = norm, .net = "Norm().cuda()", .loss = "total(model, x)"}), kept);
  EXPECT_TOLD(script_of({.net = "somewhere.build()", .loss = "model(x).mean() + model(y).mean()"}),
              kept);
  EXPECT_SILENT(script_of({.above = norm, .net = "Net().cuda()", .loss = "total(model, x)"}), kept);
  EXPECT_SILENT(script_of({.above = norm, .net = "Norm().cuda()", .loss = "model(x).mean()"}),
                kept);
  // Buffers of any kind, and norms that a helper makes.
  const std::string scaled =
      "class Scaled(nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.register_buffer('scale', torch.ones(8))\n"
      "        self.fc = nn.Linear(8, 2)\n"
      "    def forward(self, x):\n"
      "        return self.fc(x / self.scale)\n";
  EXPECT_TOLD(
      script_of({.above = scaled, .net = "Scaled()", .loss = "model(x).mean() + model(y).mean()"}),
      kept);
  const std::string helper =
      "def norm_of(n):\n    return nn.BatchNorm1d(n)\n"
      "class Made(nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.norm = norm_of(8)\n"
      "        self.fc = nn.Linear(8, 2)\n"
      "    def forward(self, x):\n"
      "        return self.fc(self.norm(x))\n";
  EXPECT_TOLD(
      script_of({.above = helper, .net = "Made()", .loss = "model(x).mean() + model(y).mean()"}),
      kept);
  // A helper that makes the pass, called twice.
  const std::string pass = "def run(net, x):\n    return net(x)\n";
  EXPECT_TOLD(script_of({.above = scaled + pass,
                         .net = "Scaled()",
                         .loss = "run(model, x).mean() + run(model, y).mean()"}),
              kept);
}

TEST(ToDdpModels, TellsLayersThatAPassLeavesOut) {
  const std::string deep =
      "class Deep(nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])\n"
      "    def forward(self, x, depth=2):\n";
  EXPECT_TOLD(told({.above = deep + "        for layer in self.layers[: depth - 1]:\n"
                                    "            x = layer(x)\n"
                                    "        return x\n",
                    .net = "Deep()"}),
              "Deep runs those of its layers that an argument chooses");
  EXPECT_SILENT(told({.above = deep + "        for i in range(4):\n"
                                      "            x = self.layers[i](x)\n"
                                      "        return x\n",
                      .net = "Deep()"}),
                "waits for a gradient");
  const std::string stem =
      "class Stem(nn.Module):\n"
      "    def __init__(self, freeze):\n"
      "        super().__init__()\n"
      "        self.freeze = freeze\n"
      "        self.stem = nn.Linear(8, 8)\n"
      "        self.fc = nn.Linear(8, 2)\n"
      "    def forward(self, x):\n"
      "        with torch.set_grad_enabled(not self.freeze):\n"
      "            x = self.stem(x)\n"
      "        return self.fc(x)\n";
  EXPECT_TOLD(told({.above = stem, .net = "Stem(True)"}), "Stem runs layers without gradients");
}

TEST(ToDdpModels, TellsPassesThatGoByTheWrapper) {
  const std::string coder =
      "class Coder(nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.fc = nn.Linear(8, 2)\n"
      "    def encode(self, x):\n"
      "        return self.fc(x)\n"
      "    def forward(self, x):\n"
      "        return self.encode(x)\n";
  for (const std::string loss : {"model.encode(x).mean()", "model.module.encode(x).mean()"}) {
    const std::string left = told({.above = coder, .net = "Coder().cuda()", .loss = loss});
    EXPECT_TRUE(says(left, "goes to `encode`, not to the wrapper's forward") ||
                says(left, "DDP007"))
        << left;
    EXPECT_SILENT(left, "Use model.module.encode");
  }
  EXPECT_SILENT(told({.above = coder,
                      .net = "Coder().cuda()",
                      .end = "with torch.no_grad():\n    model.module.encode(x)\n"}),
                "not to the wrapper's forward");
}

TEST(ToDdpModels, TellsWrappersInEachRound) {
  EXPECT_TOLD(told({.wrap = "", .behind = "        model = nn.DataParallel(model)\n"}),
              "this wraps what it has wrapped in the round before");
  // Each fold has a model of its own.
  EXPECT_SILENT(told({.wrap = "",
                      .behind = "        fold = Net()\n"
                                "        fold = nn.DataParallel(fold)\n"}),
                "in the round before");
}

TEST(ToDdpModels, TellsListsOfGpusThatOtherModulesTake) {
  const std::string spread =
      "class Spread(nn.Module):\n"
      "    def __init__(self, device_id):\n"
      "        super().__init__()\n"
      "        self.ids = device_id\n";
  EXPECT_TOLD(told({.above = spread, .before = "head = Spread(device_id=[0, 1])\n"}),
              "is given a list of GPUs");
  EXPECT_SILENT(told({.above = spread, .before = "head = Spread(device_id=None)\n"}),
                "is given a list of GPUs");
}

TEST(ToDdpModels, TellsOtherDimensionsOfTheBatch) {
  EXPECT_TOLD(told({.wrap = "model = nn.DataParallel(model, dim=1)\n"}), "along dimension 1");
  EXPECT_SILENT(told({.wrap = "model = nn.DataParallel(model, dim=0)\n"}), "along dimension");
}

TEST(ToDdpModels, LaunchesWithTheOptionsThatUseTheGpu) {
  const auto launch_of = [](const std::string& option, const std::string& use) {
    const Script script{.above = "import argparse\nparser = argparse.ArgumentParser()\n" + option +
                                 "args = parser.parse_args()\n" + use};
    return rewritten({{"train.py", script.text()}}).launch;
  };
  const std::string flag = "parser.add_argument('--cuda', action='store_true')\n";
  const std::string use = "scale = torch.ones(2)\nif args.cuda:\n    scale = scale.cuda()\n";
  EXPECT_TOLD(launch_of(flag, use), "train.py --cuda");
  EXPECT_TOLD(launch_of(flag,
                        "on = args.cuda and torch.cuda.is_available()\n"
                        "device = 'cuda' if on else 'cpu'\n"),
              "train.py --cuda");
  EXPECT_TOLD(launch_of("parser.add_argument('--use_gpu', type=bool, default=False)\n",
                        "device = 'cuda' if args.use_gpu else 'cpu'\n"),
              "train.py --use_gpu True");
  EXPECT_SILENT(launch_of(flag, ""), "--cuda");
  EXPECT_SILENT(launch_of("parser.add_argument('--no_cuda', action='store_true')\n",
                          "device = 'cuda' if not args.no_cuda else 'cpu'\n"),
                "--no_cuda");
}

}  // namespace
}  // namespace bench::diagnose
