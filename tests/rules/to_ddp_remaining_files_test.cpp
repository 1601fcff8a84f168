// What bench diagnose --to-ddp leaves to the author of files: what every rank writes, removes,
// copies, names or waits for.
#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

TEST(ToDdpRemaining, TellsWritersOfManyLibraries) {
  for (const char* line : {"import h5py\nf = h5py.File('cache.h5', 'w')\n",
                           "from pathlib import Path\n"
                           "Path('a.txt').write_text('a')\n",
                           "from PIL import Image\nImage.fromarray(grid).save('grid.png')\n",
                           "import scipy.io\nscipy.io.savemat('a.mat', {})\n",
                           "from loguru import logger\nlogger.add('run.log')\n",
                           "import codecs\nf = codecs.open('log.txt', 'a', 'utf-8')\n",
                           "from pathlib import Path\nout = Path('a.txt')\nf = out.open('w')\n"})
    EXPECT_TOLD(told({.end = line}), "every rank writes this file");
  for (const char* line : {"import h5py\nf = h5py.File('cache.h5', 'r')\n",
                           "from pathlib import Path\nprint(Path('a.txt').read_text())\n",
                           "from pathlib import Path\nf = Path('a.txt').open()\n",
                           "import sys\nfrom loguru import logger\nlogger.add(sys.stderr)\n"})
    EXPECT_SILENT(told({.end = line}), "every rank writes");
}

TEST(ToDdpRemaining, TellsWhatAConstructorOfDataWrites) {
  const auto photos = [](const std::string& built, const std::string& read) {
    return told({.above = "import numpy as np\n"
                          "class Photos(torch.utils.data.Dataset):\n"
                          "    def __init__(self):\n"
                          "        self.table = self.build()\n"
                          "    def build(self):\n"
                          "        table = count()\n" +
                          built +
                          "        return table\n"
                          "    def __getitem__(self, i):\n" +
                          read +
                          "        return self.table[i]\n"
                          "    def __len__(self):\n"
                          "        return 9\n"
                          "data = Photos()\n"});
  };
  EXPECT_TOLD(photos("        np.save('table.npy', table)\n", ""), "every rank writes this file");
  EXPECT_SILENT(photos("", "        np.save(f'{i}.npy', self.table)\n"),
                "every rank writes this file");
}

TEST(ToDdpRemaining, TellsRemovals) {
  for (const char* line :
       {"if os.path.isfile('old.pt'):\n    os.remove('old.pt')\n",
        "import shutil\nshutil.rmtree('out', ignore_errors=True)\n",
        "from pathlib import Path\nfor old in Path('out').glob('*.pt'):\n    old.unlink()\n"})
    EXPECT_TOLD(told({.end = line}), "every rank removes this");
  // A rule says more of some: once is enough.
  EXPECT_SILENT(told({.end = "os.remove('features.pt')\n"}), "every rank removes this");
  EXPECT_SILENT(told({.end = "names = ['a']\nnames.remove('a')\n"}), "every rank removes");
  EXPECT_SILENT(told({.end = "if int(os.environ['RANK']) == 0:\n    os.remove('old.pt')\n"}),
                "every rank removes");
  EXPECT_SILENT(told({.end = "from multiprocessing import shared_memory\n"
                             "shm = shared_memory.SharedMemory('a')\nshm.unlink()\n"}),
                "every rank removes");
  EXPECT_SILENT(told({.end = "try:\n    os.remove(old)\nexcept OSError:\n    pass\n"}),
                "every rank removes");
  EXPECT_SILENT(told({.end = "import tempfile, shutil\nplace = tempfile.mkdtemp()\n"
                             "shutil.rmtree(place)\n"}),
                "every rank removes");
}

TEST(ToDdpRemaining, TellsCopiesAndMoves) {
  const std::string import = "import shutil\n";
  EXPECT_TOLD(told({.before = import + "shutil.copy(__file__, 'out/train.py')\n"}),
              "every rank copies this to the same place");
  EXPECT_TOLD(told({.before = "os.rename('out', 'out.old')\n"}), "every rank moves this");
  EXPECT_TOLD(told({.before = "from pathlib import Path\nPath('out').rename('out.old')\n"}),
              "every rank moves this");
  EXPECT_TOLD(told({.before = "os.system('rm -rf ' + out)\n"}), "every rank runs this command");
  EXPECT_TOLD(told({.before = "import subprocess\nsubprocess.call(['cp', 'a', 'b'])\n"}),
              "every rank runs this command");
  EXPECT_SILENT(told({.before = "os.system('mkdir -p out')\nos.system('nvidia-smi')\n"}),
                "every rank runs");
  EXPECT_SILENT(told({.before = "import copy\ncopy.copy(model)\n"
                                "text = 'a'.replace('a', 'b')\nframe.rename('a')\n"}),
                "every rank");
  // The copy of what rank 0 alone saves is told as that.
  const auto list = told({.before = import,
                          .end = "if score > best:\n"
                                 "    torch.save(model.state_dict(), path)\n"
                                 "    print(score)\n"
                                 "    shutil.copyfile(path, 'best.pt')\n"});
  EXPECT_TOLD(list, "rank 0 alone writes this file");
  EXPECT_SILENT(list, "every rank copies");
}

TEST(ToDdpRemaining, TellsRanksThatRefuseWhatAnotherHasMade) {
  EXPECT_TOLD(told({.before = "out = 'runs/1'\n"
                              "if os.path.exists(out):\n"
                              "    raise ValueError(out)\n"
                              "os.makedirs(out)\n"}),
              "finds it there, and stops");
  EXPECT_TOLD(told({.before = "from pathlib import Path\nimport sys\nout = Path('runs')\n"
                              "if out.exists() and not force:\n"
                              "    print('there')\n    sys.exit(1)\n"
                              "out.mkdir(parents=True)\n"}),
              "finds it there, and stops");
  EXPECT_TOLD(
      told({.before = "out = 'runs/1'\nassert not os.path.exists(out)\nos.makedirs(out)\n"}),
      "finds it there, and stops");
  EXPECT_SILENT(told({.before = "if not os.path.exists('data'):\n"
                                "    raise ValueError('no data')\n"}),
                "finds it there");
  EXPECT_SILENT(told({.before = "if os.path.exists('stop'):\n    raise SystemExit\n"}),
                "finds it there");
}

TEST(ToDdpRemaining, TellsNamesThatRanksChooseAlone) {
  EXPECT_TOLD(told({.before = "import random\n"
                              "out = 'runs/' + str(random.randint(0, 9999))\n"
                              "os.makedirs(out, exist_ok=True)\n"}),
              "each rank draws a name of its own");
  EXPECT_TOLD(told({.before = "import uuid\n"
                              "os.makedirs('runs/' + uuid.uuid4().hex, exist_ok=True)\n"}),
              "each rank draws a name of its own");
  EXPECT_SILENT(told({.before = "import random\nrandom.seed(0)\n"
                                "out = 'runs/' + str(random.randint(0, 9999))\n"
                                "os.makedirs(out, exist_ok=True)\n"}),
                "each rank draws a name");
  const std::string next = "each rank takes the next free name";
  EXPECT_TOLD(told({.before = "import glob\n"
                              "runs = sorted(glob.glob('runs/experiment_*'))\n"
                              "number = int(runs[-1].split('_')[-1]) + 1 if runs else 0\n"
                              "out = os.path.join('runs', 'experiment_' + str(number))\n"
                              "os.makedirs(out, exist_ok=True)\n"}),
              next);
  EXPECT_TOLD(told({.before = "n = 0\n"
                              "while os.path.isfile(f'logs/{n:04d}.log'):\n    n += 1\n"
                              "f = open(f'logs/{n:04d}.log', 'w')\n"}),
              next);
  EXPECT_TOLD(told({.before = "out = f'runs/{len(os.listdir(\"runs\"))}'\n"
                              "os.makedirs(out, exist_ok=True)\n"}),
              next);
  EXPECT_TOLD(told({.before = "def next_name(root):\n"
                              "    for n in range(2, 9999):\n"
                              "        path = f'{root}{n}'\n"
                              "        if not os.path.exists(path):\n            break\n"
                              "    return path\n"
                              "os.makedirs(next_name('runs/exp'), exist_ok=True)\n"}),
              next);
  EXPECT_SILENT(told({.before = "for n in range(99):\n"
                                "    if not os.path.exists(f'part{n}'):\n        break\n"
                                "    parts.append(open(f'part{n}'))\n"}),
                next);
  EXPECT_SILENT(told({.before = "import glob\n"
                                "start = int(max(glob.glob('ckpt/*'))[-6:-3]) + 1\n",
                      .end = "torch.save(model.module.state_dict(), f'ckpt/{start}.pt')\n"
                             "torch.save(model.module.state_dict(), f'ckpt/{epoch}.pt')\n"}),
                next);
  EXPECT_SILENT(told({.before = "import time\n"
                                "while not os.path.exists('ready'):\n    time.sleep(1)\n"}),
                next);
  EXPECT_SILENT(told({.before = "for name in os.listdir('in'):\n"
                                "    os.makedirs(os.path.join('out', name), exist_ok=True)\n"}),
                next);
}

TEST(ToDdpRemaining, KnowsPatternsThatListOtherNames) {
  const auto with = [](const std::string& name) {
    return told({.before = "import glob\n"
                           "root = os.path.join('runs', kind)\n"
                           "runs = sorted(glob.glob(os.path.join(root, 'experiment_*')))\n"
                           "number = int(runs[-1].split('_')[-1]) + 1 if runs else 0\n"
                           "out = os.path.join(root, '" +
                           name +
                           "_{}'.format(number))\n"
                           "os.makedirs(out, exist_ok=True)\n"});
  };
  EXPECT_SILENT(with("unet"), "each rank takes the next free name");
  EXPECT_TOLD(with("experiment"), "each rank takes the next free name");
}

TEST(ToDdpRemaining, TellsFilesThatEveryRankFetches) {
  const std::string words = "every rank downloads and unpacks it into the same place";
  EXPECT_TOLD(told({.before = "s3.download_file(bucket, key, 'cache/data.set')\n"}), words);
  EXPECT_SILENT(told({.before = "s3.download_fileobj(key, temp_file)\n"}), words);
  EXPECT_SILENT(told({.before = "s3.upload_file('cache/data.set', bucket, key)\n"}), words);
}

TEST(ToDdpRemaining, TellsStepsThatARankSkips) {
  const std::string body =
      "        try:\n"
      "            loss = model(x).sum()\n"
      "            loss.backward()\n"
      "            optimizer.step()\n"
      "        except RuntimeError as e:\n";
  const auto with = [&](const std::string& handler, const std::string& round) {
    return listed(left_of({{"train.py",
                            "import torch\nfrom torch import nn\n"
                            "from torch.utils.data import DataLoader\n"
                            "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                            "loader = DataLoader(data, batch_size=64, shuffle=True)\n"
                            "for epoch in range(9):\n" +
                                round + handler}}));
  };
  const std::string batches = "    for x, y in loader:\n";
  EXPECT_TOLD(with("            if 'memory' in str(e):\n"
                   "                torch.cuda.empty_cache()\n"
                   "            else:\n"
                   "                raise e\n",
                   batches + body),
              "has skipped its backward pass");
  EXPECT_SILENT(with("            print(e)\n            raise\n", batches + body),
                "has skipped its backward pass");
  EXPECT_SILENT(with("            print(e)\n",
                     "        try:\n"
                     "            for x, y in loader:\n"
                     "                loss = model(x).sum()\n"
                     "                loss.backward()\n"
                     "                optimizer.step()\n"
                     "        except RuntimeError as e:\n"),
                "has skipped its backward pass");
}

TEST(ToDdpRemaining, TellsQuestionsAtTheKeyboard) {
  EXPECT_TOLD(told({.before = "if input('Overwrite? ') != 'y':\n    raise SystemExit\n"}),
              "every rank asks at one keyboard");
  EXPECT_SILENT(told({.before = "def input(x):\n    return x\ninput(1)\n"}), "every rank asks");
}

TEST(ToDdpRemaining, TellsKeysThatRunsOnOneGpuDidNotHave) {
  const std::string reader =
      "import torch\n"
      "from torch import nn\n"
      "net = nn.Linear(8, 2)\n"
      "net.load_state_dict(torch.load('m.pt'))\n";
  const std::string wrap = "if n_gpu > 1:\n    model = nn.DataParallel(model)\n";
  const std::string resume = "model.load_state_dict(torch.load('m.pt'))\n";
  const std::string save = "torch.save(model.state_dict(), 'm.pt')\n";
  const std::string words = "those of runs on one GPU did not";
  EXPECT_TOLD(told({.wrap = wrap, .before = resume, .end = save}, {{"test.py", reader}}), words);
  EXPECT_SILENT(told({.wrap = wrap, .before = resume, .end = save}), words);  // nobody reads it
  EXPECT_SILENT(told({.before = resume, .end = save}, {{"test.py", reader}}), words);
}

TEST(ToDdpRemaining, KeepsTheKeysThatRunsOnOneGpuHad) {
  const std::string reader =
      "import torch\n"
      "from torch import nn\n"
      "net = nn.Linear(8, 2)\n"
      "net.load_state_dict(torch.load('m.pt'))\n";
  const std::string wrap = "if n_gpu > 1:\n    model = nn.DataParallel(model)\n";
  const std::string save = "torch.save(model.state_dict(), 'm.pt')\n";
  const std::string below = "else model).state_dict(), 'm.pt')";
  const std::string kept = "torch.save(model.state_dict(), 'm.pt')";
  EXPECT_TOLD(rewritten_text({.wrap = wrap, .end = save}, {{"test.py", reader}}), below);
  EXPECT_TOLD(rewritten_text({.wrap = wrap, .end = save}), kept);           // nobody reads it
  EXPECT_TOLD(rewritten_text({.end = save}, {{"test.py", reader}}), kept);  // as they were
}

TEST(ToDdpRemaining, WaitsForWhatRankZeroSaves) {
  const std::string stopper =
      "class Stop:\n"
      "    def __call__(self, loss, model, path):\n"
      "        self.save(model, path)\n"
      "    def save(self, model, path):\n"
      "        torch.save(model.state_dict(), path + '/best.pt')\n"
      "stop = Stop()\n";
  const std::string load = "best = 'out/best.pt'\nmodel.load_state_dict(torch.load(best))\n";
  const std::string call = "    stop(loss, model, 'out')\n";
  const std::string waited = "dist.barrier()\nmodel.load_state_dict(";
  EXPECT_TOLD(rewritten_text({.above = stopper, .behind = call, .end = load}), waited);
  // What one rank may do alone gets no barrier, and is told.
  const std::string best =
      "if score() > 0.5:\n    model.load_state_dict(torch.load('out/best.pt'))\n";
  const Script alone{.above = stopper, .behind = call, .end = best};
  EXPECT_SILENT(rewritten_text(alone), "barrier()");
  EXPECT_TOLD(told(alone), "without a barrier");
}

TEST(ToDdpRemaining, TellsLaterLoadsOfWhatRankZeroSaves) {
  const std::string average =
      "def average(folder, last):\n"
      "    for n in range(last):\n"
      "        state = torch.load(folder + '/models/net.' + str(n) + '.pth')\n"
      "    return state\n";
  const std::string save =
      "    torch.save(model.state_dict(), '%s/models/net.%d.pth' % (folder, epoch))\n";
  const std::string words = "rank 0 alone writes this file now";
  const Script script{.above = average + "folder = choose()\n", .behind = save};
  Script with = script;
  with.end = "if wanted():\n    average(folder, 9)\n";
  EXPECT_TOLD(told(with), words);
  with.end = "print(folder)\n";
  EXPECT_SILENT(told(with), words);
  with.end = "average('pretrained', 9)\n";
  with.above = average + "folder = choose()\naverage(folder, 9)\n";  // a run before
  with.end = "";
  EXPECT_SILENT(told(with), words);
}

TEST(ToDdpRemaining, GuardsTheCopyWithTheSave) {
  const Script script{.above =
                          "import shutil\n"
                          "def save(state, is_best, path='last.pt'):\n"
                          "    torch.save(state, path)\n"
                          "    if is_best:\n"
                          "        shutil.copyfile(path, 'best.pt')\n",
                      .end = "save(model.module.state_dict(), True)\n"};
  EXPECT_TOLD(rewritten_text(script),
              "    if dist.get_rank() == 0:\n"
              "        torch.save(state, path)\n"
              "        if is_best:\n"
              "            shutil.copyfile(path, 'best.pt')\n");
  EXPECT_SILENT(told(script), "every rank copies");
  EXPECT_SILENT(told(script), "rank 0 alone");
}

TEST(ToDdpRemaining, KeepsBarriersOffFunctionsThatOneRankMayCall) {
  const std::string save =
      "def save(path):\n"
      "    torch.save(model.module.state_dict(), path)\n"
      "    print(path)\n";
  EXPECT_SILENT(rewritten_text({.above = save,
                                .before = "best = 0\n",
                                .behind = "    score = validate(model)\n"
                                          "    if score > best:\n        save('best.pt')\n"}),
                "barrier()");
  EXPECT_TOLD(rewritten_text({.above = save, .end = "save('last.pt')\n"}), "dist.barrier()");
}

TEST(ToDdpRemaining, IsSilentOfWhatOptionsDecide) {
  const std::string options =
      "import argparse\n"
      "parser = argparse.ArgumentParser()\n"
      "parser.add_argument('--patience', type=int, default=0)\n"
      "args = parser.parse_args()\n";
  EXPECT_SILENT(told({.above = options,
                      .behind = "    score = validate(model)\n"
                                "    if args.patience == 0:\n        continue\n"
                                "    print(score)\n"}),
                "DDP015");
}

TEST(ToDdpRemaining, LeavesPassWhereAllOfABlockGoes) {
  const Script script{.above =
                          "def choose():\n"
                          "    os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n"
                          "    os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'\n"
                          "choose()\n"};
  EXPECT_TOLD(rewritten_text(script), "def choose():\n    pass\nchoose()\n");
}

TEST(ToDdpRemaining, TellsFilesThatAllRanksReadRightAfter) {
  const std::string words = "and all of them read it at train.py";
  const std::string write = "with open('out/words.txt', 'w') as f:\n    f.write(text)\n";
  EXPECT_TOLD(told({.above = write + "words = open('out/words.txt').read()\n"}), words);
  EXPECT_SILENT(told({.above = write}), words);
  EXPECT_SILENT(told({.above = write + "words = open('in/words.txt').read()\n"}), words);
  // What was there before is no file of this run.
  EXPECT_SILENT(told({.above = "words = open('out/words.txt').read()\n" + write}), words);
}

// Of several definitions none is sure, so that no step guards the call.
TEST(ToDdpRemaining, TellsSavesByAnotherName) {
  const std::string words = "every rank saves to the same file";
  const auto with = [](const std::string& first, const std::string& other) {
    return told({.above = "from functools import partial\nif torch.__version__ > '1.6':\n    "
                          "write_save = " +
                          first + "\nelse:\n    write_save = " + other + "\n",
                 .behind = "    write_save(model.module.state_dict(), 'out/last.pt')\n"});
  };
  EXPECT_TOLD(with("partial(torch.save, pickle_protocol=4)", "torch.save"), words);
  EXPECT_SILENT(with("partial(queue.put, block=True)", "queue.put"), words);
}

TEST(ToDdpRemaining, TellsMovesOfDownloads) {
  const auto with = [](const std::string& move) {
    return told({.above = "import shutil, tempfile\n"
                          "def download_data(folder):\n"
                          "    unpacked = fetch()\n"
                          "    " +
                          move +
                          "\n"
                          "download_data('data')\n"});
  };
  EXPECT_TOLD(with("shutil.move(unpacked, folder)"), "every rank downloads");
  EXPECT_SILENT(with("shutil.move(unpacked, tempfile.mkdtemp())"), "every rank downloads");
}

TEST(ToDdpRemaining, TellsClocksThatOptionsCarryToOtherFiles) {
  const auto with = [](const std::string& line) {
    return told({.above = "from options import get_options\nopts = get_options()\n"
                          "os.makedirs(opts.save_dir)\n"},
                {{"options.py",
                  "import argparse, os, time\n"
                  "def get_options():\n"
                  "    parser = argparse.ArgumentParser()\n"
                  "    parser.add_argument('--run_name', default='run')\n"
                  "    opts = parser.parse_args()\n" +
                      line +
                      "    opts.save_dir = os.path.join('out', opts.run_name)\n"
                      "    return opts\n"}});
  };
  EXPECT_TOLD(with("    opts.run_name = opts.run_name + time.strftime('%H%M%S')\n"),
              "names its output by its own clock");
  EXPECT_SILENT(with("    opts.started = time.strftime('%H%M%S')\n"),
                "names its output by its own clock");
}

// Of a file that is a script too, what this one makes an object of.
TEST(ToDdpRemaining, TellsClocksOfObjectsFromOtherScripts) {
  const auto with = [](const std::string& made) {
    return told({.above = "from saver import Saver\nsaver = Saver()\n"},
                {{"saver.py",
                  "import os, time\n"
                  "STARTED = time.strftime('%H%M%S')\n"
                  "class Saver:\n"
                  "    def __init__(self):\n" +
                      made +
                      "        os.makedirs(self.root, exist_ok=True)\n"
                      "if __name__ == '__main__':\n"
                      "    os.makedirs(time.strftime('%H%M%S'))\n"}});
  };
  const std::string words = "names its output by its own clock";
  EXPECT_TOLD(with("        now = time.strftime('%H%M%S')\n"
                   "        self.root = os.path.join('out', f'run{os.sep}{now}')\n"),
              words);
  EXPECT_SILENT(with("        self.root = 'out'\n"), words);
}

TEST(ToDdpRemaining, TellsSavesOutOfSight) {
  const std::string words = "is not in sight, and is given the model on every rank";
  const std::string flow =
      "from workflow import Flow\n"
      "class Run(Flow):\n"
      "    def keep(self, net):\n"
      "        self.";
  const auto with = [&](const std::string& call) {
    return told({.above = flow + call + "\nrun = Run()\n", .behind = "    run.keep(model)\n"});
  };
  EXPECT_TOLD(with("save_model(net, 'a')"), words);
  EXPECT_TOLD(told({.above = "from torchtools import Checkpoint\nkeep_checkpoint = Checkpoint()\n",
                    .behind = "    keep_checkpoint(model.module.state_dict(), epoch)\n"}),
              words);
  EXPECT_SILENT(with("load_model(net, 'a')"), words);
  EXPECT_SILENT(with("save_figures('a')"), words);
  EXPECT_SILENT(with("count = self.should_save(net)"), words);
  EXPECT_SILENT(told({.above = "import deepspeed\n",
                      .loss = "deepspeed.checkpointing.checkpoint(model, x).sum()"}),
                words);
  EXPECT_SILENT(told({.behind = "    if int(os.environ['RANK']) == 0:\n"
                                "        save_model(model.module.state_dict())\n"}),
                words);
}

TEST(ToDdpRemaining, TellsFiguresByTheirNames) {
  const std::string words = "every rank writes this file";
  EXPECT_TOLD(told({.behind = "    grid_of(model).save('%s_%d.png' % (root, epoch))\n"}), words);
  EXPECT_TOLD(told({.above = "import openpyxl\nbook = openpyxl.Workbook()\n",
                    .end = "name = root + '/' + run + '.xlsx'\nbook.save(filename=name)\n"}),
              words);
  EXPECT_SILENT(told({.behind = "    state_of(model).save(epoch)\n"}), words);
}

// A config that gives its entries by name is no data set: a loader would ask it for its length.
TEST(ToDdpRemaining, TellsFilesOfConfigs) {
  const std::string words = "every rank writes this file";
  const auto with = [](const std::string& more) {
    return told({.above = "class Config(object):\n"
                          "    def __getitem__(self, name):\n"
                          "        return self.values[name]\n" +
                          more +
                          "    def write(self):\n"
                          "        with open('out/config.json', 'w') as f:\n"
                          "            f.write(str(self.values))\n"
                          "config = Config()\n"
                          "config.write()\n"});
  };
  EXPECT_TOLD(with(""), words);
  EXPECT_SILENT(with("    def __len__(self):\n        return len(self.values)\n"), words);
}

}  // namespace
}  // namespace bench::diagnose
