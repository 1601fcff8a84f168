// bench diagnose --to-ddp on loaders that helpers make, for training and evaluation alike, and on
// those whose way into the training loop cannot be followed.
#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

const std::string kDatasets = "datasets.py";
const std::string kHead = "from torch.utils import data\n";

std::string loaders_after(const std::string& helper, const std::string& uses) {
  const Script script{.above = "from datasets import make\n", .loader = uses};
  const Rewrite made = rewritten({{"train.py", script.text()}, {kDatasets, kHead + helper}});
  const auto text = made.texts.find(kDatasets);
  return text == made.texts.end() ? "" : text->second;
}

TEST(ToDdpLoaders, SharesOutWhatAHelperMakesForTraining) {
  const std::string uses = "loader = make(a, 'train')\nval_loader = make(b, 'val')\n";
  for (const char* shuffle : {"split == 'train'", "'train' in split"}) {
    const std::string test = std::string(shuffle) + " and dist.is_initialized()";
    const std::string text = loaders_after(
        "def make(items, split):\n"
        "    return data.DataLoader(items, batch_size=64, shuffle=" +
            std::string(shuffle) + ")\n",
        uses);
    EXPECT_TOLD(text, "sampler=DistributedSampler(items) if " + test + " else None");
    EXPECT_TOLD(text, "ranks = dist.get_world_size() if " + test + " else 1");
    EXPECT_TOLD(text, "batch_size=64 // ranks");
  }
  // The branch for training is no one else's.
  const std::string branch = loaders_after(
      "def make(items, split):\n"
      "    if split == 'train':\n"
      "        return data.DataLoader(items, batch_size=64, shuffle=True)\n"
      "    return data.DataLoader(items, batch_size=1)\n",
      uses);
  EXPECT_TOLD(branch, "sampler=DistributedSampler(items) if dist.is_initialized() else None");
  EXPECT_TOLD(branch, "return data.DataLoader(items, batch_size=1)\n");
}

// The loop takes a batch apart; what put it together is `cut`, which has a docstring.
Rewrite taken_apart(const std::string& cut) {
  return rewritten({{"train.py",
                     "import torch\n"
                     "from torch import nn\n"
                     "from torch.utils.data import DataLoader\n"
                     "def cut(batch):\n"
                     "    r\"\"\"Adds an outer dimension of the batch size.\"\"\"\n"
                     "    return " +
                         cut +
                         "\n"
                         "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                         "loader = DataLoader(data, 64, shuffle=True, collate_fn=cut)\n"
                         "for epoch in range(9):\n"
                         "    for batches in loader:\n"
                         "        for x in batches:\n"
                         "            model(x).sum().backward()\n"
                         "            optimizer.step()\n"}});
}

TEST(ToDdpLoaders, SharesOutLoadersOfSeveralStepsABatch) {
  const std::string words = "a batch of this loader is several steps of training";
  const Rewrite made = taken_apart("[batch[i:i + 4] for i in range(0, len(batch), 4)]");
  EXPECT_TOLD(made.texts.at("train.py"), "sampler=DistributedSampler(data)");
  EXPECT_TOLD(listed(made.left), words);
  EXPECT_TOLD(listed(taken_apart("split_up(batch)").left), words);
  EXPECT_SILENT(listed(taken_apart("[torch.stack(each, 0) for each in zip(*batch)]").left), words);
}

TEST(ToDdpLoaders, MakesTheDataOnce) {
  const auto after = [](const std::string& loader) {
    return rewritten({{"train.py", Script{.loader = loader}.text()}}).texts["train.py"];
  };
  const std::string text = after("loader = DataLoader(Items('a'), batch_size=64, shuffle=True)\n");
  EXPECT_TOLD(text, "train_data = Items('a')\n");
  EXPECT_TOLD(text,
              "loader = DataLoader(train_data, batch_size=64 // dist.get_world_size(), "
              "sampler=DistributedSampler(train_data))");
  // It is made only where the condition holds.
  EXPECT_SILENT(after("loader = DataLoader(Items('a'), 64, shuffle=True) if big else small\n"),
                "train_data");
}

TEST(ToDdpLoaders, SharesOutLoadersWithinClasses) {
  const Script script{.above = "from datasets import Batches\n",
                      .loader = "loader = Batches(args).load_data()\n"};
  const Rewrite made =
      rewritten({{"train.py", script.text()},
                 {kDatasets, kHead + "class Batches:\n"
                                     "    def __init__(self, opt):\n"
                                     "        self.loader = data.DataLoader(\n"
                                     "            read(), batch_size=64, shuffle=True)\n"
                                     "    def load_data(self):\n"
                                     "        return self\n"
                                     "    def __iter__(self):\n"
                                     "        for each in self.loader:\n"
                                     "            yield each\n"}});
  EXPECT_TOLD(made.texts.at(kDatasets), "sampler=DistributedSampler(train_data)");
  EXPECT_SILENT(listed(made.left), "a class of the project");
  EXPECT_SILENT(listed(made.left), "this loop goes over the loader");
  EXPECT_TOLD(made.texts.at("train.py"), "    loader.loader.sampler.set_epoch(epoch)\n");
  EXPECT_SILENT(listed(made.left), "set_epoch");
}

// What holds the loader is made anew in each epoch, or the rounds have no number.
TEST(ToDdpLoaders, SetsNoEpochWhereTheHolderIsAnother) {
  const std::string holder = kHead +
                             "class Batches:\n"
                             "    def __init__(self, opt):\n"
                             "        self.loader = data.DataLoader(\n"
                             "            read(), batch_size=64, shuffle=True)\n"
                             "    def __iter__(self):\n"
                             "        for each in self.loader:\n"
                             "            yield each\n";
  Script script{.above = "from datasets import Batches\n", .loader = "loader = Batches(args)\n"};
  std::string text = script.text();
  text.replace(text.find("for epoch in"), 12, "for _ in");
  const Rewrite made = rewritten({{"train.py", text}, {kDatasets, holder}});
  EXPECT_SILENT(made.texts.at("train.py"), "set_epoch");
  script.loader = "";
  script.batches = "Batches(args)";
  const Rewrite fresh = rewritten({{"train.py", script.text()}, {kDatasets, holder}});
  EXPECT_SILENT(fresh.texts.at("train.py"), "set_epoch");
}

TEST(ToDdpLoaders, SharesOutWhatIsNamedForTraining) {
  EXPECT_TOLD(loaders_after("def make(path):\n"
                            "    items = read(path)\n"
                            "    train_loader = data.DataLoader(items, 64, shuffle=True)\n"
                            "    return train_loader\n",
                            "if big:\n    loader = make('a')\nelse:\n    loader = make('b')\n"),
              "sampler=DistributedSampler(items)");
}

TEST(ToDdpLoaders, SharesOutBySettingsThatAllCallsWriteOut) {
  const std::string helper =
      "def make(items, shuffle):\n"
      "    return data.DataLoader(items, batch_size=64, shuffle=shuffle)\n";
  EXPECT_TOLD(loaders_after(helper, "loader = make(a, True)\nval_loader = make(b, False)\n"),
              "if shuffle and dist.is_initialized() else None");
  const std::string by_default =
      "def make(items, shuffle=False):\n"
      "    return data.DataLoader(items, batch_size=64, shuffle=shuffle)\n";
  EXPECT_TOLD(loaders_after(by_default, "loader = make(a, shuffle=True)\nval_loader = make(b)\n"),
              "if shuffle and dist.is_initialized() else None");
  // Validation is shuffled, too; training is not; a call gives what is not known.
  for (const char* uses : {"loader = make(a, True)\nval_loader = make(b, True)\n",
                           "loader = make(a, True)\ntrain_stats = make(a, False)\n",
                           "loader = make(a, True)\nval_loader = make(b, shuffle=args.shuffle)\n"})
    EXPECT_EQ(loaders_after(helper, uses), "") << uses;
}

TEST(ToDdpLoaders, KeepsTheOrderOfSamplersThatItReplaces) {
  const auto after = [](const std::string& loader) {
    const Script script{.loader = loader};
    return rewritten({{"train.py", script.text()}}).texts["train.py"];
  };
  EXPECT_TOLD(after("loader = DataLoader(data, batch_size=64, shuffle=False,\n"
                    "                    sampler=torch.utils.data.RandomSampler(data))\n"),
              "sampler=DistributedSampler(data)");
  EXPECT_TOLD(after("loader = DataLoader(data, batch_size=64,\n"
                    "                    sampler=torch.utils.data.SequentialSampler(data))\n"),
              "sampler=DistributedSampler(data, shuffle=False)");
  // A sampler beside a batch_sampler raises.
  EXPECT_SILENT(after("sampler = torch.utils.data.RandomSampler(data)\n"
                      "batches = torch.utils.data.BatchSampler(sampler, 64, True)\n"
                      "loader = DataLoader(data, batch_sampler=batches)\n"),
                "DistributedSampler(");
}

TEST(ToDdpLoaders, CopiesOptionsThatLoadersShare) {
  const auto after = [](const std::string& loader) {
    return rewritten({{"train.py", Script{.loader = loader}.text()}}).texts["train.py"];
  };
  const std::string shared = after(
      "options = {'batch_size': args.batch_size}\n"
      "loader = DataLoader(data, shuffle=True, **options)\n"
      "test_loader = DataLoader(test_data, **options)\n");
  EXPECT_TOLD(shared, "options = {'batch_size': args.batch_size}\n");
  EXPECT_TOLD(shared,
              "sampler=DistributedSampler(data), **{**options, \"batch_size\": "
              "options[\"batch_size\"] // dist.get_world_size()})");
  EXPECT_TOLD(shared, "test_loader = DataLoader(test_data, **options)\n");
  // A sampler beside shuffle=True raises.
  for (const char* options : {"options = {'batch_size': args.n, 'shuffle': True}\n",
                              "options = {'batch_size': args.n}\n"
                              "options.update({'num_workers': 1, 'shuffle': True})\n"}) {
    const std::string text = after(options + std::string("loader = DataLoader(data, **options)\n"));
    EXPECT_TOLD(text,
                "**{**options, \"shuffle\": False, \"sampler\": DistributedSampler(data, "
                "shuffle=options.get(\"shuffle\", False)), \"batch_size\": ");
    EXPECT_TOLD(text, "assert options[\"batch_size\"] % dist.get_world_size() == 0");
  }
  EXPECT_TOLD(after("options = {'num_workers': 2}\n"
                    "loader = DataLoader(data, batch_size=64, shuffle=True, **options)\n"),
              "sampler=DistributedSampler(data), **options)");
}

TEST(ToDdpLoaders, SharesOutThePartOfADictionaryThatTrains) {
  const auto after = [](const std::string& words) {
    const Script script{.loader =
                            "loaders = {x: DataLoader(sets[x], batch_size=64, shuffle=True) "
                            "for x in [" +
                            words + "]}\n",
                        .batches = "loaders['train']"};
    return rewritten({{"train.py", script.text()}}).texts["train.py"];
  };
  EXPECT_TOLD(after("'train', 'val'"),
              "batch_size=64 // (dist.get_world_size() if x == 'train' else 1), "
              "sampler=DistributedSampler(sets[x]) if x == 'train' else None, "
              "shuffle=not (x == 'train'))");
  EXPECT_SILENT(after("'a', 'b'"), "if x ==");
}

TEST(ToDdpLoaders, JoinsAboveConstructorsThatWrap) {
  const std::string text =
      rewritten({{"train.py",
                  "import torch\n"
                  "from torch import nn\n"
                  "from torch.utils.data import DataLoader\n"
                  "class Solver:\n"
                  "    def __init__(self):\n"
                  "        self.net = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                  "    def run(self):\n"
                  "        for x in DataLoader(data, 64, shuffle=True):\n"
                  "            self.net(x).sum().backward()\n"
                  "            optimizer.step()\n"
                  "Solver().run()\n"}})
          .texts["train.py"];
  EXPECT_TOLD(text, "dist.init_process_group(\"nccl\")\nSolver().run()\n");
}

TEST(ToDdpLoaders, SharesOutUnderTwoConditions) {
  const std::string helper =
      "def make(items, phase):\n"
      "    if phase == 'train':\n"
      "        return data.DataLoader(items, batch_size=64, shuffle=True)\n"
      "    elif phase == 'val':\n"
      "        return data.DataLoader(items, batch_size=1)\n";
  EXPECT_TOLD(loaders_after(helper,
                            "for phase in ('train', 'val'):\n"
                            "    if phase == 'train' and mode != 'val':\n"
                            "        loader = make(a, phase)\n"
                            "    elif phase == 'val':\n"
                            "        val_loader = make(b, phase)\n"),
              "sampler=DistributedSampler(items)");
}

TEST(ToDdpLoaders, TellsLoadersThatCouldNotBeFollowed) {
  const std::string fetcher =
      "import registry\n"
      "def make(path):\n"
      "    return DataLoader(registry.read(path), batch_size=64, sampler=registry.Balanced())\n";
  const auto list = told({.above = fetcher, .loader = "loader = registry.Fetcher(make('a'))\n"});
  EXPECT_TOLD(list, "which training seems to draw from, has a sampler of its own");
  EXPECT_SILENT(list, "could not be followed");
  // The loop's own loader is known; another one serves something else.
  EXPECT_SILENT(told({.end = "other = DataLoader(pool, batch_size=64, sampler=Own(pool))\n"}),
                "seems to draw from");
  EXPECT_SILENT(told({.loader = "loader = registry.Fetcher(data)\n",
                      .end = "for x in DataLoader(pool, batch_size=64, sampler=Own(pool)):\n"
                             "    keep(x)\n"}),
                "seems to draw from");
}

TEST(ToDdpLoaders, TellsIteratorsThatTakeNoSampler) {
  const std::string words = "this iterator takes no DistributedSampler";
  const std::string made =
      "import torchtext\nloader = torchtext.data.BucketIterator(data, batch_size=64)\n";
  EXPECT_TOLD(told({.loader = made}), words);
  EXPECT_TOLD(told({.loader = made, .batches = "registry.wrap(loader)"}), words);
  EXPECT_SILENT(told({}), words);
}

TEST(ToDdpLoaders, TellsSamplersUnderAnOptionThatIsOff) {
  const auto with = [](const std::string& call) {
    return told(
        {.above = "from datasets import make\n", .loader = call},
        {{kDatasets, kHead + "from torch.utils.data.distributed import DistributedSampler\n"
                             "def make(items, distributed=False):\n"
                             "    sampler = DistributedSampler(items) if distributed else None\n"
                             "    return data.DataLoader(items, 64, shuffle=sampler is None,\n"
                             "                           sampler=sampler)\n"}});
  };
  EXPECT_TOLD(with("loader = make(a)\n"), "shared out only as `distributed` says");
  EXPECT_SILENT(with("loader = make(a, distributed=True)\n"), "shared out only");
}

std::string script_with(const std::string& loader, const std::string& batches = "loader") {
  return rewritten({{"train.py", Script{.loader = loader, .batches = batches}.text()}})
      .texts["train.py"];
}

TEST(ToDdpLoaders, KeepsEvaluationWholeWhereALoopMakesTheLoaders) {
  const std::string words = "sampler=DistributedSampler(sets[k]) if k == 'train' else None";
  const std::string call = "DataLoader(sets[k], batch_size=64, shuffle=k == 'train')";
  EXPECT_TOLD(
      script_with("loaders = {}\nfor k in ('train', 'valid'):\n    loaders[k] = " + call + "\n",
                  "loaders['train']"),
      words);
  const std::string sets = "sets = {'train': read('a'), 'val': read('b')}\n";
  EXPECT_TOLD(script_with(sets + "loaders = {k: DataLoader(sets[k], 64, shuffle=True) for k in "
                                 "sets}\n",
                          "loaders['train']"),
              words);
  EXPECT_TOLD(script_with(sets + "loaders = {k: " +
                              "DataLoader(v, batch_size=64, shuffle=True) for k, v in sets.items()}"
                              "\n",
                          "loaders['train']"),
              "sampler=DistributedSampler(v) if k == 'train' else None");
  EXPECT_TOLD(script_with("loader, val_loader = [DataLoader(d, batch_size=64, shuffle=True) for d "
                          "in (train_set, val_set)]\n"),
              "sampler=DistributedSampler(d) if d is train_set else None");
  EXPECT_TOLD(script_with("make = lambda d, train: DataLoader(d, batch_size=64, shuffle=train)\n"
                          "loader = make(data, True)\n"),
              "sampler=DistributedSampler(d) if train else None");
  // The items may all be for training.
  EXPECT_TOLD(script_with("loaders = {}\nfor k in ('a', 'b'):\n"
                          "    loaders[k] = DataLoader(sets[k], batch_size=64, shuffle=True)\n",
                          "loaders['a']"),
              "sampler=DistributedSampler(sets[k]))");
}

TEST(ToDdpLoaders, KeepsTheWordThatACallGives) {
  EXPECT_TOLD(loaders_after("def make(items, is_train=True):\n"
                            "    return data.DataLoader(items, batch_size=64, shuffle=is_train)\n",
                            "loader = make(a)\n"),
              "shuffle=is_train and not dist.is_initialized()");
}

TEST(ToDdpLoaders, GivesEachDataSetOfAStatementAName) {
  const std::string text = script_with(
      "loader, other = (DataLoader(Items('a'), batch_size=64, shuffle=True),\n"
      "                 DataLoader(Items('b'), batch_size=64, shuffle=True))\n",
      "zip(loader, other)");
  EXPECT_TOLD(text, "sampler=DistributedSampler(train_data)");
  EXPECT_TOLD(text, "train_data_2 = Items('b')");
  EXPECT_TOLD(text, "sampler=DistributedSampler(train_data_2)");
}

TEST(ToDdpLoaders, PutsTheSamplerIntoOptionsAlone) {
  const std::string text = script_with(
      "options = {'batch_size': 64, 'shuffle': True}\n"
      "loader = DataLoader(data, sampler=None, **options)\n");
  EXPECT_TOLD(text, "DataLoader(data, **{**options");
}

std::string trained_in(const std::string& lines) {
  return "import torch\n"
         "from torch import nn\n"
         "from torch.utils.data import DataLoader\n"
         "import engine\n"
         "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
         "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
         "trainer = engine.Trainer(model, optimizer)\n"
         "train_loader = DataLoader(data, batch_size=64, shuffle=True)\n" +
         lines;
}

TEST(ToDdpLoaders, SharesOutWhatTrainsOutOfSight) {
  const std::string loop = "for epoch in range(9):\n    for x, y in train_loader:\n        ";
  const auto with = [&](const std::string& lines) {
    return rewritten({{"train.py", trained_in(lines)}});
  };
  for (const char* step : {"trainer.step(x, y)\n", "engine.fit_batch(model, x, y)\n",
                           "trainer(x, y)\n", "optimizer.step(closure_of(x, y))\n"}) {
    const Rewrite made = with(loop + step);
    EXPECT_TOLD(made.texts.at("train.py"), "sampler=DistributedSampler(data)");
    EXPECT_TOLD(listed(made.left), "nothing calls set_epoch on this sampler");
  }
  EXPECT_TOLD(listed(with("for epoch in range(9):\n"
                          "    engine.train_one_epoch(model, optimizer, train_loader)\n")
                         .left),
              "nothing calls set_epoch on this sampler");
}

TEST(ToDdpLoaders, SetsTheEpochBelowTheLoader) {
  const auto with = [](const std::string& above, const std::string& within) {
    return rewritten({{"train.py",
                       "import torch\n"
                       "from torch import nn\n"
                       "from torch.utils.data import DataLoader\n"
                       "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                       "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n" +
                           above + "step = 0\nwhile step < 99:\n" + within +
                           "    for x in loader:\n"
                           "        optimizer.zero_grad()\n"
                           "        model(x).sum().backward()\n"
                           "        optimizer.step()\n"
                           "        step += 1\n"}})
        .texts["train.py"];
  };
  const std::string made = "loader = DataLoader(data, batch_size=64, shuffle=True)\n";
  EXPECT_TOLD(with(made, ""),
              "while step < 99:\n    loader.sampler.set_epoch(data_epoch)\n    data_epoch += 1\n");
  const std::string text = with("", "    " + made);
  EXPECT_TRUE(text.find("loader = DataLoader(") < text.find("loader.sampler.set_epoch")) << text;
  EXPECT_TOLD(text, "    data_epoch += 1\n    for x in loader:");
}

TEST(ToDdpLoaders, BeginsNoCountOfEpochsAnewInEach) {
  const auto with = [](const std::string& end) {
    return rewritten({{"train.py",
                       "import torch\n"
                       "from torch import nn\n"
                       "from torch.utils.data import DataLoader\n"
                       "def run(loader, model, optimizer):\n"
                       "    step = 0\n"
                       "    while step < 99:\n"
                       "        for x in loader:\n"
                       "            model(x).sum().backward()\n"
                       "            optimizer.step()\n"
                       "            step += 1\n"
                       "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                       "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                       "loader = DataLoader(data, batch_size=64, shuffle=True)\n" +
                           end}})
        .texts["train.py"];
  };
  EXPECT_TOLD(with("run(loader, model, optimizer)\n"), "    data_epoch = 0\n    while step < 99:");
  EXPECT_SILENT(with("for round in range(3):\n    run(loader, model, optimizer)\n"), "data_epoch");
}

TEST(ToDdpLoaders, TellsPassesOverLoadersThatAreMadeAlike) {
  const std::string helper =
      "def make(items, train):\n"
      "    return data.DataLoader(items, batch_size=64, shuffle=train)\n";
  const auto with = [&](const std::string& word) {
    const Script script{.above = "from datasets import make\n",
                        .loader = "loader = make(a, True)\nmemory = make(a, " + word + ")\n",
                        .behind = "    bank = [net(x) for x in memory]\n"};
    return listed(rewritten({{"train.py", script.text()}, {kDatasets, kHead + helper}}).left);
  };
  EXPECT_TOLD(with("True"), "the loader of this loop is made in the way of that for training");
  EXPECT_SILENT(with("False"), "the loader of this loop");
}

TEST(ToDdpLoaders, TellsPassesOfComprehensionsButNoFirstLook) {
  const std::string words = "this loop goes over the loader of the training";
  EXPECT_TOLD(told({.end = "bank = torch.cat([net(x) for x, y in loader])\n"}), words);
  EXPECT_TOLD(told({.before = "for x, y in loader:\n    mean += engine.step_stats(x)\n"}), words);
  EXPECT_TOLD(
      listed(left_of({{"train.py", trained_in("trainer.fit(train_loader)\n"
                                              "m = sum(x.mean() for x in train_loader)\n")}})),
      words);
  const std::string look =
      "def shape_of(batches):\n    for x, y in batches:\n        return x.shape\n"
      "shape_of(loader)\n";
  EXPECT_SILENT(told({.before = look}), words);
  EXPECT_SILENT(told({.before = "for x, y in loader:\n    engine.warmup_step(model, x, y)\n"}),
                words);
}

TEST(ToDdpLoaders, TellsEvaluationDataThatTrains) {
  const auto list =
      told({.loader = "loader = DataLoader(data, batch_size=64, shuffle=True)\n"
                      "valid_queue = DataLoader(data, batch_size=64, sampler=Half(data))\n",
            .loss = "model(x).sum()\n"
                    "        if search:\n"
                    "            xs, ys = next(iter(valid_queue))\n"
                    "            model(xs).sum().backward()"});
  EXPECT_TOLD(list, "has a sampler of its own that knows no ranks");
}

TEST(ToDdpLoaders, TellsHowEpisodesAreDivided) {
  const auto list = told({.above = "class Tasks:\n"
                                   "    def __init__(self, data):\n"
                                   "        self.episodes = 8\n"
                                   "    def __call__(self, epoch):\n"
                                   "        return draw(self, epoch)\n",
                          .loader = "tasks = Tasks(data)\n",
                          .batches = "tasks(epoch)"});
  EXPECT_TOLD(list, "the batches are episodes");
  EXPECT_SILENT(list, "Give its loader sampler=");
}

}  // namespace
}  // namespace bench::diagnose
