// What bench diagnose --to-ddp says of files that are there: copies, private places, other
// checkpoints, and what only looks like a name, a refusal or a removal.
#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

const char* const kKeep =
    "import shutil\n"
    "def keep(state, is_best, name='last.pth'):\n"
    "    torch.save(state, name)\n"
    "    if is_best:\n"
    "        shutil.copyfile(name, 'model_best.pth')\n";

TEST(ToDdpChanges, WaitsForWhatACopyOfRankZeroLeaves) {
  const std::string save = "    keep(model.state_dict(), score() > best)\n";
  const std::string load = "model.load_state_dict(torch.load('model_best.pth'))\n";
  EXPECT_TOLD(rewritten_text({.above = kKeep, .behind = save, .end = load}),
              "dist.barrier()\nmodel.load_state_dict(");
  EXPECT_TOLD(told({.above = kKeep, .behind = save, .end = "if score() > 0.5:\n    " + load}),
              "without a barrier");
}

TEST(ToDdpChanges, TakesTheReplaceAlongUnderTheGuard) {
  EXPECT_TOLD(rewritten_text({.end = "torch.save(model.state_dict(), 'out/last.tmp')\n"
                                     "os.replace('out/last.tmp', 'out/last.pt')\n"}),
              "    torch.save(model.state_dict(), 'out/last.tmp')\n"
              "    os.replace('out/last.tmp', 'out/last.pt')\n");
}

TEST(ToDdpChanges, LeavesStreamsAndPrivatePlacesAlone) {
  for (const char* end :
       {"import io\nbuffer = io.BytesIO()\ntorch.save(model.state_dict(), buffer)\n",
        "import tempfile\nhandle, name = tempfile.mkstemp()\n"
        "torch.save(model.state_dict(), name)\n",
        "import tempfile\nwith tempfile.TemporaryDirectory() as place:\n"
        "    torch.save(model.state_dict(), os.path.join(place, 'm.pt'))\n"}) {
    EXPECT_SILENT(rewritten_text({.end = end}), "get_rank() == 0");
    EXPECT_SILENT(told({.end = end}), "every rank saves");
  }
}

TEST(ToDdpChanges, AsksWhetherAReaderLoadsThisCheckpointIntoABareModel) {
  const std::string wrap = "if n_gpu > 1:\n    model = nn.DataParallel(model)\n";
  const std::string save = "torch.save(model.state_dict(), 'm.pt')\n";
  const std::string below = "else model).state_dict(), 'm.pt')";
  const auto text = [&](const std::string& reader) {
    return rewritten_text({.wrap = wrap, .end = save},
                          {{"test.py", "import torch\nfrom torch import nn\n" + reader}});
  };
  const std::string load = "net.load_state_dict(torch.load('m.pt'))\n";
  EXPECT_TOLD(text("net = nn.Linear(8, 2)\n" + load), below);
  // A wrapper under a test is none on one GPU.
  EXPECT_TOLD(told({.wrap = wrap, .before = "model." + load.substr(4), .end = save},
                   {{"test.py",
                     "import torch\nfrom torch import nn\nnet = nn.Linear(8, 2)\n"
                     "if n_gpu > 1:\n    net = nn.DataParallel(net)\n" +
                         load}}),
              "those of runs on one GPU did not");
  EXPECT_SILENT(text("net = nn.DataParallel(nn.Linear(8, 2))\n" + load), below);
  EXPECT_SILENT(text("net = vgg16()\nnet.load_state_dict(torch.load('vgg16.pth'))\n"), below);
  EXPECT_SILENT(text("net = nn.Linear(8, 2)\n" + load + "torch.save(net.state_dict(), 'n.pt')\n"),
                below);
}

TEST(ToDdpChanges, TellsTestsThatStillAskForTheNumberOfGpus) {
  const std::string words = "this still asks for the number of GPUs";
  const std::string wrap = "if n_gpu > 1:\n    model = nn.DataParallel(model)\n";
  const auto saved = [](const std::string& test) {
    return "state = model.module.state_dict() if " + test + " else model.state_dict()\n" +
           "torch.save(state, 'm.pt')\n";
  };
  EXPECT_TOLD(told({.wrap = wrap, .end = saved("n_gpu > 1")}), words);
  EXPECT_TOLD(told({.wrap = wrap, .end = "if n_gpu > 1:\n    model = model.module\n"}), words);
  EXPECT_SILENT(told({.wrap = wrap, .end = saved("hasattr(model, 'module')")}), words);
  EXPECT_SILENT(told({.end = saved("n_gpu > 1")}), words);  // wrapped always, before, too
}

TEST(ToDdpChanges, TellsEarlyStopsInTheConditionOfALoop) {
  const std::string above =
      "import argparse\nparser = argparse.ArgumentParser()\n"
      "parser.add_argument('--patience', type=int, default=3)\nargs = parser.parse_args()\n";
  const auto loop = [&](const std::string& test) {
    std::string text = Script{.above = above,
                              .before = "epoch, bad, best = 0, 0, 9\n",
                              .behind =
                                  "    epoch += 1\n"
                                  "    bad = 0 if validate(model) < best else bad + 1\n"}
                           .text();
    const std::string head = "for epoch in range(9):";
    text.replace(text.find(head), head.size(), "while epoch < 9" + test + ":");
    return listed(left_of({{"train.py", text}}));
  };
  EXPECT_TOLD(loop(" and bad < args.patience"), "whether training ends here");
  EXPECT_SILENT(loop(""), "whether training ends here");
}

TEST(ToDdpChanges, TellsAReadOfWhatIsSavedOnce) {
  const std::string list =
      told({.above = "def test():\n    model.load_state_dict(torch.load('out/best.pt'))\n",
            .behind = "    torch.save(model.state_dict(), 'out/best.pt')\n",
            .end = "def main():\n    if score() < 0.3:\n        return\n    test()\nmain()\n"});
  EXPECT_SILENT(list, "rank 0 alone writes this file now");
}

TEST(ToDdpChanges, IsSilentOfLoopsThatTakeNoFreeName) {
  const std::string next = "each rank takes the next free name";
  for (const char* before :
       {"for i in range(100):\n    if os.path.exists(f'cache/{i}.npy'):\n        continue\n"
        "    print(i)\n    if i > 10:\n        break\n",
        "def last():\n    for n in range(100):\n        if not os.path.exists(f'out/{n}.pt'):\n"
        "            return n - 1\nstart = last()\n",
        "classes = os.listdir('data/train')\nname = f'resnet_{len(classes)}'\n"
        "os.makedirs(os.path.join('out', name), exist_ok=True)\n"})
    EXPECT_SILENT(told({.before = before}), next);
  EXPECT_SILENT(told({.behind = "    if os.path.exists('STOP'):\n        break\n"
                                "    if loss.item() < 1e-4:\n        break\n"}),
                next);
  EXPECT_TOLD(told({.above = "class Log:\n    def __init__(self):\n"
                             "        for i in range(100):\n"
                             "            self.out = f'runs/{i}'\n"
                             "            if not os.path.exists(self.out):\n"
                             "                os.makedirs(self.out)\n"
                             "                break\n"
                             "log = Log()\n"}),
              next);
}

TEST(ToDdpChanges, AsksWhatARefusalRefuses) {
  const std::string stops = "finds it there, and stops";
  const std::string make = "os.makedirs('out', exist_ok=True)\n";
  for (const std::string test : {"os.path.exists('out') == False", "os.path.isfile('out')",
                                 "os.path.exists('out') and not os.path.isdir('out')"})
    EXPECT_SILENT(told({.before = make + "if " + test + ":\n    raise SystemExit('no')\n"}), stops);
  const std::string options =
      "import argparse\nparser = argparse.ArgumentParser()\n"
      "parser.add_argument('--resume', default='')\nargs = parser.parse_args()\n";
  EXPECT_TOLD(told({.above = options,
                    .before = "if os.path.exists('out') and not args.resume:\n"
                              "    raise ValueError('out')\n" +
                              make}),
              stops);
  EXPECT_TOLD(told({.above = options,
                    .before = "if os.path.exists('out'):\n    if not args.resume:\n"
                              "        raise ValueError('out')\n" +
                              make}),
              stops);
}

TEST(ToDdpChanges, FollowsCommandsAndKnowsObjectsOfTheProgram) {
  const std::string runs = "every rank runs this command";
  EXPECT_TOLD(told({.before = "cmd = 'rm -rf out'\nos.system(cmd)\n"}), runs);
  EXPECT_TOLD(told({.before = "os.system('cd out && rm *.pt')\n"}), runs);
  EXPECT_TOLD(told({.end = "import subprocess\nsubprocess.run(['python', 'test.py', out])\n"}),
              runs);
  EXPECT_SILENT(told({.before = "os.system('cd out && ls')\nos.system('python --version')\n"}),
                runs);
  EXPECT_SILENT(told({.above = "class Queue:\n    def unlink(self):\n        pass\n"
                               "file_queue = Queue()\nfile_queue.unlink()\n"}),
                "every rank removes");
  EXPECT_SILENT(told({.before = "import tempfile\n"
                                "with tempfile.NamedTemporaryFile(delete=False) as t:\n"
                                "    name = t.name\nos.unlink(name)\n"}),
                "every rank removes");
}

// pytorch-template's: a directory named by the clock, made by a class method in another file.
TEST(ToDdpChanges, AllowsTheRunDirectoryThatAnotherRankHasMade) {
  const std::string config =
      "from datetime import datetime\n"
      "from pathlib import Path\n"
      "class Config:\n"
      "    def __init__(self, run_id=None):\n"
      "        if run_id is None:\n"
      "            run_id = datetime.now().strftime('%m%d_%H%M%S')\n"
      "        self.save_dir = Path('saved') / run_id\n"
      "        exist_ok = run_id == ''\n"
      "        self.save_dir.mkdir(parents=True, exist_ok=exist_ok)\n"
      "    @classmethod\n"
      "    def from_args(cls):\n"
      "        return cls()\n";
  const Files files = {
      {"config.py", config},
      {"train.py",
       Script{.above = "from config import Config\nconfig = Config.from_args()\n"}.text()}};
  const Rewrite made = rewritten(files);
  EXPECT_TOLD(made.texts.at("config.py"), "exist_ok=True)");
  EXPECT_TOLD(listed(made.left), "names its output by its own clock");
  EXPECT_TOLD(rewritten_text({.before = "os.makedirs('out', exist_ok=chosen)\n"}),
              "exist_ok=chosen)");
}

// What guards an earlier run, or looks for a free name, is told and stays.
TEST(ToDdpChanges, KeepsTheGuardOfOtherRunDirectories) {
  for (const char* make :
       {"os.makedirs('runs/exp', exist_ok=False)\n",
        "fresh = args == 1\nos.makedirs('runs/exp', exist_ok=fresh)\n",
        "def make(k):\n    os.makedirs(time.strftime('%m%d') + k, exist_ok=False)\n"
        "try:\n    make('a')\nexcept FileExistsError:\n    make('b')\n"})
    EXPECT_SILENT(rewritten_text({.before = std::string("import time\n") + make}), "exist_ok=True");
}

TEST(ToDdpChanges, TellsLogsThatAreMadeByTheNameOfAModule) {
  EXPECT_TOLD(told({.before = "import importlib\n"
                              "log = importlib.import_module(name).SummaryWriter('out')\n"}),
              "every rank opens a run or a log");
  EXPECT_TOLD(told({.before = "from tensorboard_logger import Logger as TbLogger\n"
                              "log = TbLogger('out')\n"}),
              "every rank opens a run or a log");
}

}  // namespace
}  // namespace bench::diagnose
