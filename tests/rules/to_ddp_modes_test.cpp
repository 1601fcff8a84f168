// bench diagnose --to-ddp where a program has modes: what runs above the group, flags that tell
// wrapped from unwrapped, keys of other scripts, and wrappers that more than one name leads to.

#include <gtest/gtest.h>

#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

const std::string kOfLauncher = "if int(os.environ.get(\"RANK\", 0)) == 0:";

TEST(ToDdpModes, AsksTheLauncherWhereTheGroupIsJoinedLater) {
  const std::string list = told({.above = "log = open('out/log.txt', 'w')\n"});
  EXPECT_TOLD(list, kOfLauncher);
  EXPECT_TOLD(list, "The process group is joined later (train.py:");
  EXPECT_TOLD(told({.end = "log = open('out/log.txt', 'w')\n"}), "if dist.get_rank() == 0:");
}

// What the advice takes for granted beside the rank.
TEST(ToDdpModes, SaysThatTheGroupIsJoinedLaterOfAllItsCalls) {
  const std::string ask = "answer = input('Overwrite? ')\n";
  EXPECT_TOLD(told({.above = ask}), "and above it dist.broadcast_object_list raises.");
  EXPECT_SILENT(told({.end = ask}), "dist.broadcast_object_list raises");
}

// A helper that is called above the group and below it.
TEST(ToDdpModes, AsksTheLauncherInHelpersOfBothPlaces) {
  const std::string helper = "def note():\n    open('out/log.txt', 'w').write('x')\n";
  EXPECT_TOLD(told({.above = helper + "note()\n", .end = "note()\n"}), kOfLauncher);
  EXPECT_SILENT(told({.above = helper, .end = "note()\n"}), kOfLauncher);
}

Files trainer(const std::string& flag, const std::string& condition = "self.is_parallel") {
  return {{"train.py",
           "from options import args\n"
           "from trainer import Trainer\n"
           "if __name__ == '__main__':\n"
           "    Trainer(args).train()\n"},
          {"options.py",
           "import argparse\n"
           "parser = argparse.ArgumentParser()\n"
           "parser.add_argument('--num_gpu', type=int, default=1)\n"
           "args = parser.parse_args()\n"},
          {"trainer.py",
           "import torch\n"
           "from torch import nn\n"
           "from torch.utils.data import DataLoader\n"
           "class Trainer:\n"
           "    def __init__(self, args):\n"
           "        self.model = nn.Linear(8, 8).cuda()\n"
           "        " +
               flag +
               "\n"
               "        if " +
               condition +
               ":\n"
               "            self.model = nn.DataParallel(self.model)\n"
               "    def train(self):\n"
               "        for epoch in range(9):\n"
               "            for x in DataLoader(data, batch_size=64, shuffle=True):\n"
               "                self.model(x).mean().backward()\n"
               "                self.optimizer.step()\n"
               "        torch.save(self.model.module.state_dict() if self.is_parallel\n"
               "                   else self.model.state_dict(), 'net.pt')\n"}};
}

TEST(ToDdpModes, LetsReadersOfAFlagFollowTheWrapper) {
  const Rewrite made = rewritten(trainer("self.is_parallel = args.num_gpu > 1"));
  const std::string text = made.texts.at("trainer.py");
  EXPECT_TOLD(text, "self.is_parallel = dist.is_initialized() or args.num_gpu > 1");
  EXPECT_TOLD(text, "        if self.is_parallel:\n");
  EXPECT_SILENT(listed(made.left), "is_parallel");
  EXPECT_SILENT(listed(made.left), "asks for the number of GPUs");
  const Rewrite negated = rewritten(trainer("self.single = args.num_gpu == 1", "not self.single"));
  EXPECT_TOLD(negated.texts.at("trainer.py"),
              "self.single = not dist.is_initialized() and args.num_gpu == 1");
}

// What is no answer of its own: an option, the number of GPUs in sight, a flag of another file.
TEST(ToDdpModes, LeavesOtherFlagsAlone) {
  const auto text = [](const std::string& flag) {
    return rewritten(trainer(flag)).texts.at("trainer.py");
  };
  EXPECT_TOLD(text("self.is_parallel = torch.cuda.device_count() > 1"),
              "self.is_parallel = torch.cuda.device_count() > 1\n");
  EXPECT_TOLD(text("self.is_parallel = args.is_parallel"), "self.is_parallel = args.is_parallel\n");
  EXPECT_TOLD(text("self.is_parallel = len(args.gpus)"), "self.is_parallel = len(args.gpus)\n");
}

// All that stands in the script: the flag is the group's, and no option.
TEST(ToDdpModes, KnowsTheFlagOfTheGroup) {
  const Script script{.above = "many = len(gpus) > 1\n",
                      .wrap = "if many:\n    model = nn.DataParallel(model)\n"};
  EXPECT_TOLD(rewritten_text(script), "many = dist.is_initialized()\n");
  const std::string multi = "multi_gpu = len(gpus) > 1\n";
  EXPECT_SILENT(
      told({.above = multi, .wrap = "if multi_gpu:\n    model = nn.DataParallel(model)\n"}),
      "the wrapper stands under");
  const Script negated{.above = "one_gpu = len(gpus) == 1\n",
                       .wrap = "if not one_gpu:\n    model = nn.DataParallel(model)\n"};
  EXPECT_TOLD(rewritten_text(negated), "one_gpu = not dist.is_initialized()\n");
  EXPECT_SILENT(told(negated), "the wrapper stands under");
}

// Of a flag that asks for something else, only the test at the wrapper changes.
TEST(ToDdpModes, ChangesOnlyFlagsThatAskForGpus) {
  const std::string text =
      rewritten_text({.above = "parallel = phase == 'train'\n",
                      .wrap = "if parallel:\n    model = nn.DataParallel(model)\n"});
  EXPECT_TOLD(text, "parallel = phase == 'train'\n");
  EXPECT_TOLD(text, "if dist.is_initialized():\n    model = DistributedDataParallel(");
}

TEST(ToDdpModes, TellsReadersOfAFlagThatCannotFollow) {
  Files files = trainer("self.is_parallel = args.is_parallel", "len(args.num_gpu) > 1");
  EXPECT_TOLD(listed(left_of(files)), "every run wraps the model now, and this still asks");
}

// if count > 1: wrap, flag = True: the flag goes with the wrapper, which one GPU still has not.
TEST(ToDdpModes, KnowsFlagsThatAreSetBesideTheWrapper) {
  const auto list = [](const std::string& condition) {
    return told({.above = "multi_gpu = False\n",
                 .wrap = "if " + condition +
                         ":\n    model = nn.DataParallel(model)\n    multi_gpu = True\n",
                 .end = "torch.save(model.module.state_dict() if multi_gpu else "
                        "model.state_dict(), 'net.pt')\n"});
  };
  EXPECT_SILENT(list("torch.cuda.device_count() > 1"), "this still asks for the number of GPUs");
  EXPECT_SILENT(list("len(gpus) > 1"), "this still asks for the number of GPUs");
}

TEST(ToDdpModes, LeavesTheGroupOnlyOnce) {
  const Script script{.end = "torch.distributed.destroy_process_group() if many else None\n"};
  EXPECT_TOLD(rewritten_text(script),
              "if dist.is_initialized():\n    dist.destroy_process_group()");
  EXPECT_SILENT(rewritten_text({}), "if dist.is_initialized():\n    dist.destroy_process_group()");
}

TEST(ToDdpModes, LoadsTensorsThatAreUsedAsTheyAreToTheGpuOfTheRank) {
  const auto text = [](const std::string& taken) {
    return rewritten_text({.above = "centers = torch.zeros(8, 2).cuda()\nbest = 0\n",
                           .before = "state = torch.load('checkpoint.pt')\n"
                                     "model.load_state_dict(state['model'])\n" +
                                     taken});
  };
  EXPECT_TOLD(text("centers = state['centers']\n"), "map_location=lambda storage, place:");
  EXPECT_TOLD(text("best = state['best']\n"), "map_location=\"cpu\"");
}

TEST(ToDdpModes, TellsKeysOfOtherScripts) {
  const auto list = [](const std::string& wrap, const std::string& load) {
    return told({.above = "import copy\nteacher = Net().cuda()\n",
                 .wrap = "if len(gpus) > 1:\n    model = nn.DataParallel(model)\n" + wrap,
                 .before = load,
                 .loss = "nn.functional.mse_loss(model(x), teacher(x))",
                 .end = "torch.save(model.state_dict(), 'net.pt')\n"});
  };
  const std::string wrapped = "    teacher = nn.DataParallel(teacher)\n";
  const std::string load = "teacher.load_state_dict(torch.load(path)['state'])\n";
  EXPECT_TOLD(list(wrapped, load), "those of a file that another script wrote on one GPU do not");
  EXPECT_SILENT(list(wrapped, "teacher.load_state_dict(states[0])\n"),
                "that another script wrote on one GPU");
  EXPECT_SILENT(list("", load), "that another script wrote on one GPU");
  EXPECT_SILENT(list(wrapped, "model.load_state_dict(torch.load(path)['state'])\n"),
                "that another script wrote on one GPU");
}

// The program's own class writes the file, out of sight.
TEST(ToDdpModes, KnowsCheckpointsOfAnOwnClass) {
  const auto list = [](const std::string& kept) {
    return told({.above = "class CheckpointIO:\n"
                          "    def __init__(self, **modules):\n"
                          "        self.modules = modules\n"
                          "    def save(self, path):\n"
                          "        write({k: v.state_dict() for k, v in self.modules.items()}, "
                          "path)\n",
                 .wrap = "if len(gpus) > 1:\n    model = nn.DataParallel(model)\n",
                 .before = kept + "model.load_state_dict(torch.load(path)['state'])\n"});
  };
  EXPECT_SILENT(list("io = CheckpointIO(model=model)\n"), "that another script wrote on one GPU");
  EXPECT_TOLD(list(""), "that another script wrote on one GPU");
}

// for p in model.parameters(): p.requires_grad = False of another class's model.
TEST(ToDdpModes, KnowsWhichModelIsFrozen) {
  const auto made = [](const std::string& frozen) {
    return rewritten({{"train.py",
                       "import torch\n"
                       "from torch import nn\n"
                       "from torch.utils.data import DataLoader\n"
                       "class Words(nn.Module):\n"
                       "    def __init__(self):\n"
                       "        super().__init__()\n"
                       "        self.table = nn.Embedding(8, 8)\n"
                       "        model = self.table\n"
                       "        for p in model.parameters():\n"
                       "            p.requires_grad = False\n"
                       "words = Words()\n"
                       "def main():\n"
                       "    model = nn.Linear(8, 8).cuda()\n" +
                           frozen +
                           "    model = nn.DataParallel(model)\n"
                           "    head = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                           "    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)\n"
                           "    for x in DataLoader(data, batch_size=8, shuffle=True):\n"
                           "        head(model(x)).mean().backward()\n"
                           "        optimizer.step()\n"
                           "main()\n"}})
        .texts.at("train.py");
  };
  EXPECT_TOLD(made(""), "model = DistributedDataParallel(model, ");
  EXPECT_SILENT(made("    for p in model.parameters():\n        p.requires_grad = False\n"),
                "model = DistributedDataParallel(model, ");
}

TEST(ToDdpModes, FollowsAClassThatTheCommandLineRuns) {
  const auto made = [](const std::string& component) {
    return rewritten({{"train.py",
                       "import fire\n"
                       "import utils\n"
                       "from torch import optim\n"
                       "class Runner:\n"
                       "    def train(self, lr=0.1):\n"
                       "        net = utils.network()\n"
                       "        optimizer = optim.Adam(net.parameters(), lr=lr)\n"
                       "        for x in utils.loader():\n"
                       "            net(x).mean().backward()\n"
                       "            optimizer.step()\n"
                       "if __name__ == '__main__':\n"
                       "    fire.Fire(" +
                           component + ")\n"},
                      {"utils.py",
                       "from torch import nn\n"
                       "from torch.utils.data import DataLoader\n"
                       "def network():\n"
                       "    return nn.DataParallel(nn.Linear(8, 8).cuda())\n"
                       "def loader():\n"
                       "    return DataLoader(data, batch_size=64, shuffle=True)\n"}});
  };
  for (const char* component : {"Runner", "Runner()"}) {
    const Rewrite rewrite = made(component);
    ASSERT_EQ(rewrite.refusal, "");
    ASSERT_TRUE(rewrite.texts.contains("utils.py"));
    EXPECT_TOLD(rewrite.texts.at("train.py"),
                "    dist.init_process_group(\"nccl\")\n    fire.Fire(");
  }
}

// The constructor runs for every command, and each of them wraps.
TEST(ToDdpModes, JoinsAboveTheCommandsOfAClass) {
  const std::string text = rewritten({{"train.py",
                                       "import fire\n"
                                       "import torch\n"
                                       "from torch import nn\n"
                                       "from torch.utils.data import DataLoader\n"
                                       "class Runner:\n"
                                       "    def __init__(self, gpus='0,1'):\n"
                                       "        self.is_parallel = len(gpus.split(',')) > 1\n"
                                       "    def build(self):\n"
                                       "        net = nn.Linear(8, 8).cuda()\n"
                                       "        if self.is_parallel:\n"
                                       "            net = nn.DataParallel(net)\n"
                                       "        return net\n"
                                       "    def train(self):\n"
                                       "        net = self.build()\n"
                                       "        opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
                                       "        for x in DataLoader(data, 64, shuffle=True):\n"
                                       "            net(x).mean().backward()\n"
                                       "            opt.step()\n"
                                       "    def test(self):\n"
                                       "        print(self.build().module)\n"
                                       "if __name__ == '__main__':\n"
                                       "    fire.Fire(Runner)\n"}})
                               .texts.at("train.py");
  EXPECT_TOLD(text, "self.is_parallel = dist.is_initialized()\n");
  EXPECT_TOLD(text, "    dist.init_process_group(\"nccl\")\n    fire.Fire(Runner)\n");
}

constexpr const char* kReplicate =
    "import functools\n"
    "from torch.nn.parallel.data_parallel import DataParallel\n"
    "def execute_replication_callbacks(modules):\n"
    "    pass\n"
    "class DataParallelWithCallback(DataParallel):\n"
    "    def replicate(self, module, device_ids):\n"
    "        modules = super(DataParallelWithCallback, self).replicate(module, device_ids)\n"
    "        execute_replication_callbacks(modules)\n"
    "        return modules\n"
    "def patch_replication_callback(data_parallel):\n"
    "    assert isinstance(data_parallel, DataParallel)\n"
    "def convert_model(module):\n"
    "    if isinstance(module, DataParallel):\n"
    "        mod = convert_model(module.module)\n"
    "        return DataParallelWithCallback(mod, device_ids=module.device_ids)\n"
    "    return SynchronizedBatchNorm2d(module)\n";

TEST(ToDdpModes, SynchronisesTheOldBatchNormBetweenRanks) {
  const auto text = [](const std::string& imported, const std::string& wrap) {
    return rewritten_text({.above = "from sync_batchnorm import " + imported + "\n", .wrap = wrap},
                          {{"sync_batchnorm.py", kReplicate}});
  };
  const std::string convert = "torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)";
  const std::string wrapped = "model = DistributedDataParallel(" + convert + ", device_ids=";
  const std::string callback =
      text("DataParallelWithCallback", "model = DataParallelWithCallback(module=model)\n");
  EXPECT_TOLD(callback, wrapped);
  const std::string patched =
      text("patch_replication_callback",
           "model = nn.DataParallel(model)\npatch_replication_callback(model)\n");
  EXPECT_TOLD(patched, wrapped);
  EXPECT_SILENT(patched, "patch_replication_callback(model)");
  const std::string converted =
      text("convert_model", "model = convert_model(model)\nmodel = nn.DataParallel(model)\n");
  EXPECT_TOLD(converted, "model = " + convert + "\n");
  EXPECT_TOLD(converted, "model = DistributedDataParallel(model");
  EXPECT_SILENT(text("convert_model", "model = nn.DataParallel(model)\n"), "SyncBatchNorm");
  const std::string kept = text("patch_replication_callback",
                                "class Run:\n"
                                "    def __init__(self, model):\n"
                                "        self.model = nn.DataParallel(model)\n"
                                "        patch_replication_callback(self.model)\n"
                                "model = Run(model).model\n");
  EXPECT_TOLD(kept, "self.model = DistributedDataParallel(torch.nn.SyncBatchNorm.");
  EXPECT_SILENT(kept, "patch_replication_callback(self.model)");
  // Only some runs ask for it.
  const std::string optional = text("patch_replication_callback",
                                    "model = nn.DataParallel(model)\n"
                                    "if cross_replica:\n    patch_replication_callback(model)\n");
  EXPECT_SILENT(optional, "SyncBatchNorm");
  EXPECT_TOLD(optional, "    patch_replication_callback(model)\n");
}

// Functions of that name that do something else.
TEST(ToDdpModes, KeepsOtherConversions) {
  const auto text = [](const std::string& body, const std::string& call) {
    return rewritten_text({.above = "from utils import convert_model\n",
                           .wrap = "model = " + call + "\nmodel = nn.DataParallel(model)\n"},
                          {{"utils.py", "def convert_model(model, momentum=0.1):\n" + body}});
  };
  const std::string makes = "    return SynchronizedBatchNorm2d(model)\n";
  EXPECT_TOLD(text(makes, "convert_model(model)"), "convert_sync_batchnorm");
  EXPECT_SILENT(text(makes, "convert_model(model, 0.01)"), "convert_sync_batchnorm");
  EXPECT_SILENT(
      text("    'SynchronizedBatchNorm stays.'\n    return nn.SiLU()\n", "convert_model(model)"),
      "convert_sync_batchnorm");
}

TEST(ToDdpModes, TellsNothingOfThePackageItself) {
  EXPECT_SILENT(told({.above = "from sync_batchnorm import convert_model, "
                               "DataParallelWithCallback\n",
                      .wrap = "model = DataParallelWithCallback(convert_model(model))\n"},
                     {{"sync_batchnorm.py", kReplicate}}),
                "sync_batchnorm.py");
}

// A DataParallel that scatters in a way of its own is refused still.
TEST(ToDdpModes, RefusesWhatDoesMoreThanCallbacks) {
  std::string own = kReplicate;
  own +=
      "class Balanced(DataParallelWithCallback):\n"
      "    def scatter(self, inputs, kwargs, ids):\n"
      "        return inputs\n";
  const Script script{.above = "from sync_batchnorm import Balanced\n",
                      .wrap = "model = Balanced(model)\n"};
  const Rewrite made = rewritten({{"train.py", script.text()}, {"sync_batchnorm.py", own}});
  EXPECT_TOLD(made.refusal, "wraps in Balanced");
}

TEST(ToDdpModes, TellsWrappersThatACallPutsIntoAFile) {
  const auto list = [](const std::string& given) {
    return told({.above = "import copy\n"
                          "class Baseline:\n"
                          "    def __init__(self, model):\n"
                          "        self.model = copy.deepcopy(model)\n"
                          "        self.best = 0\n"
                          "    def state_dict(self):\n"
                          "        return {'model': " +
                          given + ", 'best': self.best}\n",
                 .before = "baseline = Baseline(model)\n",
                 .end = "torch.save({'net': model.module.state_dict(),\n"
                        "            'baseline': baseline.state_dict()}, 'net.pt')\n"});
  };
  EXPECT_TOLD(list("self.model"), "is pickled into this file with its DDP wrapper");
  EXPECT_SILENT(list("self.model.module"), "is pickled into this file");
  EXPECT_SILENT(list("self.model.state_dict()"), "is pickled into this file");
}

TEST(ToDdpModes, FollowsNoFunctionsThatUnwrap) {
  const auto list = [](const std::string& test, const std::string& other) {
    return told({.above = "def unwrap(net):\n    if " + test + ":\n        return net.module\n" +
                          other + "def state(net):\n    return {'net': unwrap(net)}\n",
                 .end = "torch.save(unwrap(model), 'net.pt')\n"
                        "torch.save(state(model), 'state.pt')\n"});
  };
  EXPECT_SILENT(list("isinstance(net, nn.DataParallel)", "    return net\n"), "is pickled into");
  EXPECT_SILENT(list("hasattr(net, 'module')", "    else:\n        return net\n"),
                "is pickled into");
  EXPECT_TOLD(told({.above = "def state(net):\n    return {'net': net}\n",
                    .end = "torch.save(state(model), 'state.pt')\n"}),
              "is pickled into");
}

TEST(ToDdpModes, TellsLayersThatRunAroundTheWrapper) {
  const auto list = [](const std::string& call) {
    return told({.above = "class Gan(nn.Module):\n"
                          "    def __init__(self):\n"
                          "        super().__init__()\n"
                          "        self.net = Net()\n"
                          "        self.critic = Net()\n"
                          "    def forward(self, x):\n"
                          "        return self.net(x)\n"
                          "    def critic_loss(self, x):\n"
                          "        return self.critic(x).mean()\n"
                          "    def scale_loss(self, x):\n"
                          "        return x * 2\n",
                 .net = "Gan().cuda()",
                 .wrap = "parallel = nn.DataParallel(model)\n",
                 .loss = call});
  };
  const std::string apart = "parallel(x).mean()\n        model.critic_loss(x).backward()";
  EXPECT_TOLD(list(apart), "runs layers of it (`self.critic`, train.py:");
  // DDP is told of a parameter once in a backward pass, whichever ways lead to it.
  EXPECT_SILENT(list("parallel(x).mean() + model.critic_loss(x)"), "around the wrapper's forward");
  EXPECT_SILENT(list("parallel(x).mean() + model.scale_loss(x)"), "around the wrapper's forward");
}

// Two networks in one wrapper, of which the forward pass runs one.
TEST(ToDdpModes, TellsModulesThatAWrapperHoldsBesideItsForward) {
  const auto list = [](const std::string& run) {
    return told({.above = "class Both(nn.Module):\n"
                          "    def __init__(self, generator, critic):\n"
                          "        super().__init__()\n"
                          "        self.generator = generator\n"
                          "        self.critic = critic\n"
                          "    def forward(self, x):\n"
                          "        return " +
                          run + "\n",
                 .net = "Both(Net().cuda(), Net().cuda())"});
  };
  EXPECT_TOLD(list("self.critic(x)"), "Both holds a module that its forward pass does not run");
  EXPECT_SILENT(list("self.critic(self.generator(x))"), "holds a module that its forward");
}

TEST(ToDdpModes, TellsTensorsThatAreTrainedBesideTheModel) {
  const auto list = [](const std::string& made) {
    return told({.before = "from torch.autograd import Variable\n"
                           "book = " +
                           made +
                           "\n"
                           "optimizer = torch.optim.SGD([{'params': model.parameters()}, "
                           "{'params': book}], lr=0.1)\n"});
  };
  const std::string words = "`book` is a parameter beside the wrapped model";
  EXPECT_TOLD(list("Variable(torch.zeros(8, 2).cuda(), requires_grad=True)"), words);
  EXPECT_TOLD(list("torch.randn(8, 2, device='cuda', requires_grad=True)"), words);
  EXPECT_TOLD(list("torch.randn(8, 2).cuda().requires_grad_()"), words);
  EXPECT_SILENT(list("torch.randn(8, 2, device='cuda', requires_grad=False)"), words);
}

}  // namespace
}  // namespace bench::diagnose
