// What bench diagnose --to-ddp tells of batch sizes and of what ranks draw at random.
#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

const std::string kOptions =
    "import argparse\n"
    "parser = argparse.ArgumentParser()\n"
    "parser.add_argument('--batch_size', type=int, default=64)\n"
    "parser.add_argument('--gen_batch', type=int, default=64)\n"
    "args = parser.parse_args()\n";
const std::string kLoader = "loader = DataLoader(data, batch_size=args.batch_size, shuffle=True)\n";

TEST(ToDdpBatches, TellsOtherUsesOfTheBatchSize) {
  const std::string words = "this still takes the whole for the size of a batch";
  const auto with = [](const std::string& in_loop, const std::string& before = "") {
    return told({.above = kOptions,
                 .loader = kLoader,
                 .before = before,
                 .loss = "model(x).sum()\n        " + in_loop});
  };
  EXPECT_TOLD(with("z = torch.randn(args.batch_size, 8)"), words);
  EXPECT_TOLD(with("z = prior.sample((args.batch_size,))"), words);
  EXPECT_TOLD(with("x = x.view(args.batch_size, -1)"), words);
  EXPECT_TOLD(with("z = both[: args.batch_size]"), words);
  EXPECT_TOLD(with("skip = x.size(0) != args.batch_size"), words);
  EXPECT_TOLD(with("z = torch.randn(n, 8)", "n = args.batch_size\n"), words);
  // Another setting, the tensor's own size, noise for pictures, a count of steps.
  EXPECT_SILENT(with("z = torch.randn(args.gen_batch, 8)"), words);
  EXPECT_SILENT(with("z = torch.randn(x.size(0), 8)"), words);
  EXPECT_SILENT(with("pass", "fixed_noise = torch.randn(args.batch_size, 8)\n"), words);
  EXPECT_SILENT(with("pass", "steps = len(data) // args.batch_size\n"), words);
  EXPECT_SILENT(with("seen = step * args.batch_size"), words);
  // The batch is no longer than its share; examples.
  EXPECT_SILENT(with("y = y[: args.batch_size]"), words);
  EXPECT_SILENT(with("pass", "viz_noise = torch.randn(args.batch_size, 8)\n"), words);
  EXPECT_SILENT(with("pass", "writer.add_graph(net, torch.zeros(args.batch_size, 8))\n"), words);
}

TEST(ToDdpBatches, TellsTheSameFieldOfOneClass) {
  const auto with = [](const std::string& owner) {
    return listed(left_of({{"train.py",
                            "import torch\n"
                            "from torch import nn\n"
                            "from torch.utils.data import DataLoader\n"
                            "class Batches:\n"
                            "    def __init__(self, data):\n"
                            "        self.batch_size = int(sizes[0])\n"
                            "        self.loader = DataLoader(\n"
                            "            data, batch_size=self.batch_size, shuffle=True)\n"
                            "    def draw(self):\n"
                            "        return next(iter(self.loader))\n"
                            "class Queue:\n"
                            "    def __init__(self):\n"
                            "        self.batch_size = 16\n"
                            "batches = Batches(data)\n"
                            "queue = Queue()\n"
                            "model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                            "z = torch.zeros(" +
                                owner +
                                ".batch_size, 8)\n"
                                "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                                "for step in range(99):\n"
                                "    x = batches.draw()\n"
                                "    optimizer.zero_grad()\n"
                                "    model(x + z).sum().backward()\n"
                                "    optimizer.step()\n"}}));
  };
  EXPECT_TOLD(with("batches"), "this still takes the whole for the size of a batch");
  EXPECT_SILENT(with("queue"), "this still takes the whole");
}

TEST(ToDdpBatches, TakesTheNumberOfGpusOutOfTheBatch) {
  const Rewrite made =
      rewritten({{"train.py",
                  Script{.above = kOptions,
                         .loader = "loader = DataLoader(data, shuffle=True,\n"
                                   "    batch_size=args.batch_size * torch.cuda.device_count())\n"}
                      .text()}});
  EXPECT_TOLD(made.texts.at("train.py"), "batch_size=args.batch_size)\n");
  EXPECT_SILENT(listed(made.left), "the batch size of all GPUs");
  EXPECT_SILENT(listed(made.left), "gives a rank its share");
}

TEST(ToDdpBatches, LeavesBatchesThatAreNone) {
  const auto with = [](const std::string& size) {
    return rewritten({{"train.py", Script{.loader = "loader = DataLoader(data, batch_size=" + size +
                                                    ", shuffle=True)\n"}
                                       .text()}});
  };
  EXPECT_TOLD(with("None").texts.at("train.py"), "batch_size=None, sampler=");
  EXPECT_TOLD(listed(with("None").left), "this loader makes no batches");
  // Each rank's share is one batch, as all the data was.
  EXPECT_TOLD(with("len(data)").texts.at("train.py"), "batch_size=len(data), sampler=");
  EXPECT_SILENT(listed(with("len(data)").left), "no step has divided");
  EXPECT_TOLD(listed(with("4").left), "does not divide by every number of GPUs");
}

TEST(ToDdpBatches, TellsPartsOfTheBatch) {
  const std::string words = "this is a part of the whole";
  EXPECT_TOLD(told({.above = kOptions,
                    .loader = kLoader,
                    .before = "sub_batch = int(args.batch_size / args.steps)\n"}),
              words);
  for (const char* counted : {"num_batches", "chunks_per_batch", "log_batches"})
    EXPECT_SILENT(told({.above = kOptions,
                        .loader = kLoader,
                        .before = counted + std::string(" = args.batch_size // 4\n")}),
                  words);
  EXPECT_SILENT(told({.above = kOptions,
                      .loader = kLoader,
                      .before = "accumulate = args.batch_size // args.steps\n"}),
                words);
}

TEST(ToDdpBatches, TellsUsesOfABatchThatIsToBeDivided) {
  const auto list =
      told({.above = kOptions,
            .loader = "loader = DataLoader(data, batch_size=args.batch_size, sampler=Own(data))\n",
            .loss = "model(torch.randn(args.batch_size, 8)).sum()"});
  EXPECT_TOLD(list, "once the loader of train.py:");
}

TEST(ToDdpBatches, TellsBatchesThatDoNotDivide) {
  const auto with = [](const std::string& size, const std::string& loader) {
    std::string options = kOptions;
    options.replace(options.find("default=64"), 10, "default=" + size);
    return told({.above = options, .loader = loader});
  };
  const auto list = with("30", kLoader);
  EXPECT_TOLD(list, "a batch of 30, as the script has it by default,");
  EXPECT_TOLD(list, "Give --batch_size a multiple");
  EXPECT_SILENT(with("32", kLoader), "multiple");
  EXPECT_TOLD(with("32", "loader = DataLoader(data, batch_size=6, shuffle=True)\n"),
              "a batch of 6 does not divide");
  EXPECT_TOLD(with("1", kLoader), "which is one by default: every rank takes what --batch_size");
  EXPECT_TOLD(with("1", "loader = DataLoader(data, shuffle=True)\n"), "which cannot be divided");
  EXPECT_SILENT(with("64", kLoader), "cannot be divided");
}

TEST(ToDdpBatches, NamesTheNumberOfGpusThatDoesNotDivide) {
  const auto of = [](const std::string& size, const std::string& above = "") {
    return told({.above = above + kOptions,
                 .loader = "loader = DataLoader(data, batch_size=" + size + ", shuffle=True)\n"});
  };
  EXPECT_TOLD(of("6"), "and not by 4: the rest is left out");
  EXPECT_TOLD(of("12"), "and not by 8: the rest is left out");
  EXPECT_SILENT(of("24"), "multiple");
  // That of the launch line, where the script chose its GPUs.
  const std::string three = "os.environ['CUDA_VISIBLE_DEVICES'] = '0,1,2'\n";
  EXPECT_TOLD(of("args.batch_size", three), "does not divide by the 3 processes");
  EXPECT_TOLD(of("args.batch_size", three), "Give --batch_size a multiple of 3");
  EXPECT_SILENT(of("24", three), "multiple");
  EXPECT_TOLD(of("sizes[0]", three), "divides by the 3 processes of the launch line is not in");
  EXPECT_SILENT(of("sizes[0]"), "multiple");
}

TEST(ToDdpBatches, KnowsDefaultsThatAnotherValueStandsBeside) {
  const auto with = [](const std::string& condition) {
    return told({.above = "import argparse\n"
                          "parser = argparse.ArgumentParser()\n"
                          "parser.add_argument('--batch-size', type=int, default=6)\n"
                          "args = parser.parse_args()\n" +
                          condition,
                 .loader = kLoader});
  };
  const std::string words = "a batch of 6, as the script has it by default,";
  EXPECT_TOLD(with("if args.batch_size is None:\n    args.batch_size = 4 * len(gpus)\n"), words);
  EXPECT_TOLD(with("if args.batch_size is None:\n    args.batch_size = 4 * len(gpus)\n"),
              "Give --batch-size a multiple");
  EXPECT_SILENT(with("if args.large:\n    args.batch_size = 4 * len(gpus)\n"), words);
}

TEST(ToDdpBatches, KnowsSizesOfConfigFiles) {
  const auto with = [](const std::string& config) {
    return told({.above = "import yaml\nconfig = yaml.safe_load(open('conf/a.yaml'))\n",
                 .loader = "size = config['train']['batch_size']\n"
                           "loader = DataLoader(data, batch_size=size, shuffle=True)\n"},
                {{"conf/a.yaml", config}});
  };
  EXPECT_TOLD(with("train:\n  batch_size: 6\n"), "a batch of 6, as conf/a.yaml has it, does not");
  EXPECT_SILENT(with("train:\n  batch_size: 16\n"), "multiple");
  EXPECT_SILENT(with("valid:\n  batch_size: 6\n"), "multiple");
}

TEST(ToDdpBatches, ChecksTheDivisionWhereNobodySwallowsIt) {
  const auto with = [](const std::string& handler) {
    return rewritten_text(
        {.loader = "size = sizes[0]\n"
                   "try:\n"
                   "    loader = DataLoader(data, batch_size=size, shuffle=True)\n" +
                   handler});
  };
  const std::string check =
      "    if size % dist.get_world_size() != 0:\n"
      "        raise SystemExit(\"the batch does not divide by the number of ranks\")\n"
      "    loader = ";
  EXPECT_TOLD(with("except Exception as e:\n    print(e)\n"), check);
  EXPECT_SILENT(with("except Exception as e:\n    print(e)\n    raise\n"), check);
  EXPECT_TOLD(with("except FileNotFoundError as e:\n    print(e)\n"), "    assert size % dist");
}

TEST(ToDdpBatches, TellsBatchSizesThatNoStepDivides) {
  const std::string words = "no step has divided the batch size of this loader: unless";
  EXPECT_TOLD(told({.loader = "loader = DataLoader(data, shuffle=True, **settings['loader'])\n"}),
              words);
  EXPECT_TOLD(told({.loader = "loader = DataLoader(data, opt.pop('size'), shuffle=True)\n"}),
              words);
  EXPECT_SILENT(told({.loader = "loader = DataLoader(data, int(opt.size), shuffle=True)\n"}),
                words);
  EXPECT_SILENT(told({}), words);
}

TEST(ToDdpBatches, TellsPassesOverTheShareOfTheTraining) {
  const std::string words = "this loop goes over the loader of the training";
  EXPECT_TOLD(told({.before = "for x, y in loader:\n    counts.append(y)\n"}), words);
  EXPECT_SILENT(told({.before = "for x, y in loader:\n    print(x.shape)\n    break\n"}), words);
  EXPECT_SILENT(told({.before = "for x, y in other_loader:\n    counts.append(y)\n"}), words);
}

TEST(ToDdpBatches, TellsPassesOverALoaderThatTrainingHasInAList) {
  const auto with = [](const std::string& pass) {
    return told({.loader = "train_loader = DataLoader(data, batch_size=64, shuffle=True)\n"
                           "loaders = []\nloaders.append(train_loader)\n",
                 .before = "for x, y in train_loader:\n" + pass,
                 .batches = "loaders[0]"});
  };
  const std::string words = "this loop goes over the loader of the training";
  EXPECT_TOLD(with("    counts.append(y)\n"), words);
  EXPECT_SILENT(with("    counts.append(y)\n"), "no step has shared them out");
  EXPECT_SILENT(with("    print(x.shape)\n    break\n"), words);
}

TEST(ToDdpBatches, TellsSizesForAllGpus) {
  const std::string loader =
      "n = torch.cuda.device_count()\n"
      "loader = DataLoader(data, batch_size=args.batch_size * n_gpu, shuffle=True)\n";
  EXPECT_TOLD(told({.above = kOptions,
                    .loader = loader,
                    .before = "labels = torch.ones(args.batch_size * n_gpu)\n"}),
              "this is the size for all GPUs");
  EXPECT_SILENT(told({.above = kOptions, .loader = loader}), "this is the size for all GPUs");
}

TEST(ToDdpBatches, TellsNoiseOfOneSeed) {
  const std::string noisy = "model(x + torch.randn_like(x)).sum()";
  EXPECT_TOLD(told({.above = "torch.manual_seed(7)\n", .loss = noisy}), "the same numbers here");
  EXPECT_SILENT(told({.loss = noisy}), "the same numbers here");
  EXPECT_SILENT(told({.above = "torch.manual_seed(7)\n"}), "the same numbers here");
  EXPECT_SILENT(told({.above = "torch.manual_seed(7 + int(os.environ['RANK']))\n", .loss = noisy}),
                "the same numbers here");
  EXPECT_SILENT(
      told({.above = "import random\ntorch.manual_seed(random.randint(1, 99))\n", .loss = noisy}),
      "the same numbers here");
}

TEST(ToDdpBatches, TellsCountsOfSamplesThatTheScheduleGoesBy) {
  const auto with = [](const std::string& lines) {
    return told({.before = "seen = 0\n", .loss = "model(x).sum()\n        " + lines});
  };
  EXPECT_TOLD(with("seen += x.size(0)\n        scheduler.step(seen)"),
              "counts the samples of one rank");
  // A mean, a count of steps, all ranks.
  EXPECT_SILENT(with("seen += x.size(0)\n        print(total / seen)"), "counts the samples");
  EXPECT_SILENT(with("seen += 1\n        scheduler.step(seen)"), "counts the samples");
  EXPECT_SILENT(with("seen += x.size(0) * ranks\n        scheduler.step(seen)"),
                "counts the samples");
}

TEST(ToDdpBatches, TellsListsThatEachRankShuffles) {
  const auto with = [](const std::string& lines, const std::string& list = "files") {
    return told({.above = "import random\n" + lines + "data = read_dataset(" + list + ")\n"});
  };
  EXPECT_TOLD(with("random.shuffle(files)\n"), "a random order of its own");
  EXPECT_TOLD(with("random.shuffle(files)\ntrain = files[:800]\n", "train"),
              "a random order of its own");
  EXPECT_TOLD(told({.above = "import random\ndef order(items):\n    random.shuffle(items)\n",
                    .behind = "    order(dataset.items)\n"}),
              "a random order of its own");
  for (const char* seed : {"random.seed(1)\n", "random.seed(args.random_seed)\n",
                           "from transformers import set_seed\nset_seed(42)\n"})
    EXPECT_SILENT(with(seed + std::string("random.shuffle(files)\n")), "a random order");
  EXPECT_SILENT(with("random.shuffle(test_files)\n", "test_files"), "a random order");
  // What is no list of samples.
  EXPECT_SILENT(told({.above = "import random\ndef make(steps):\n    random.shuffle(steps)\n"
                               "    return steps\nmake([flip, crop])\n"}),
                "a random order");
  EXPECT_SILENT(with("random.shuffle(class_ids)\n"), "a random order");
}

TEST(ToDdpBatches, TellsNoiseOfSamplesAlone) {
  const auto with = [](const std::string& line) {
    return told({.before = "torch.manual_seed(7)\n", .loss = "model(x).sum()\n        " + line});
  };
  const std::string words = "every rank draws the same numbers here";
  EXPECT_TOLD(with("z = torch.randn(*x.shape)"), words);
  EXPECT_TOLD(with("z = torch.rand_like(x)"), words);
  EXPECT_SILENT(with("z = model(x) if torch.rand(1).item() < 0.5 else x"), words);
  EXPECT_SILENT(with("nn.init.normal_(model.module.fc.weight)"), words);
  EXPECT_SILENT(with("for p in model.parameters(): p.grad.add_(torch.randn_like(p.grad))"), words);
  // With seeds of their own ranks would decide each for itself.
  const auto both =
      with("z = torch.rand_like(x)\n        w = model(z) if torch.rand(1) < 0.5 else z");
  EXPECT_TOLD(both, "a generator of the rank's own");
  EXPECT_SILENT(both, "Seed with seed");
}

// What every call of the function switches off draws nothing.
TEST(ToDdpBatches, TellsNoNoiseThatIsNeverDrawn) {
  const auto with = [](const std::string& mode) {
    return told({.above = "def pairs(x, is_training):\n"
                          "    if is_training:\n"
                          "        x = x + torch.rand_like(x)\n"
                          "    return x\n",
                 .before = "torch.manual_seed(7)\n",
                 .loss = "model(pairs(x, is_training=" + mode + ")).sum()"});
  };
  EXPECT_TOLD(with("True"), "every rank draws the same numbers here");
  EXPECT_SILENT(with("False"), "every rank draws the same numbers here");
}

TEST(ToDdpBatches, TellsDataThatEachRankShuffles) {
  const auto with = [](const std::string& seed, const std::string& method) {
    return told({.above = "import random\nfrom torch.utils.data import Dataset\n" + seed +
                          "class Items(Dataset):\n"
                          "    def __init__(self, items):\n"
                          "        self.items = items\n"
                          "        self.order()\n"
                          "    def __len__(self):\n"
                          "        return len(self.items)\n"
                          "    def __getitem__(self, i):\n"
                          "        return self.items[i]\n"
                          "    def " +
                          method +
                          "\n"
                          "data = Items(read())\n"});
  };
  const std::string shuffled = "order(self):\n        random.shuffle(self.items)";
  EXPECT_TOLD(with("", shuffled), "a random order of its own");
  EXPECT_TOLD(with("random.seed(random.randint(1, 99))\n", shuffled), "a random order of its own");
  EXPECT_SILENT(with("random.seed(3)\n", shuffled), "a random order of its own");
  EXPECT_SILENT(with("",
                     "order(self):\n        pass\n"
                     "    def __getitem__(self, i):\n"
                     "        return random.sample(self.items[i], 3)"),
                "a random order of its own");
}

// What is counted over the samples of a rank, divided by the batch of all; and the rows of a batch.
TEST(ToDdpBatches, TellsFiguresDividedByTheBatchOfAll) {
  const std::string words = "this still takes the whole for the size of a batch";
  const auto with = [](const std::string& in_loop, const std::string& behind = "") {
    return told({.above = kOptions,
                 .loader = kLoader,
                 .loss = "model(x).sum()\n        " + in_loop,
                 .behind = behind});
  };
  EXPECT_TOLD(with("acc = (model(x).argmax(1) == y).sum() / args.batch_size"), words);
  EXPECT_TOLD(with("correct += hits(model(x), y)",
                   "    print(correct / (len(loader) * args.batch_size))\n"),
              words);
  EXPECT_TOLD(with("for i in range(args.batch_size):\n            show(x[i])"), words);
  // Over a loader of the evaluation, which takes all data.
  EXPECT_SILENT(with("pass",
                     "    correct = 0\n    for x, y in test_loader:\n"
                     "        correct += hits(model(x), y)\n"
                     "    print(correct / (len(test_loader) * args.batch_size))\n"),
                words);
  // A sum of mean losses, a number of steps, and what is drawn so many times.
  EXPECT_SILENT(with("print(sum(losses) / args.batch_size)"), words);
  EXPECT_SILENT(with("pass", "    steps = len(data) / args.batch_size\n"), words);
  EXPECT_SILENT(with("for i in range(args.batch_size):\n            names.append(draw())"), words);
  EXPECT_SILENT(with("acc = (model(x).argmax(1) == y).sum() / args.gen_batch"), words);
}

TEST(ToDdpBatches, TellsNoiseOfTheFunctionsThatMakeSteps) {
  const auto with = [](const std::string& step,
                       const std::string& seed = "torch.manual_seed(7)\n") {
    return told({.above = seed + step, .loss = "step(x)"});
  };
  const std::string words = "every rank draws the same numbers here";
  EXPECT_TOLD(with("def step(x):\n    return model(x + torch.randn_like(x)).sum()\n"), words);
  EXPECT_TOLD(with("def step(x):\n"
                   "    return model(x, torch.randint(0, 99, (x.shape[0],))).sum()\n"),
              words);
  EXPECT_SILENT(with("def step(x):\n    return model(x + torch.randn_like(x)).sum()\n", ""), words);
  EXPECT_SILENT(with("def step(x):\n    return model(x).sum()\n"
                     "def other(x):\n    return torch.randn_like(x)\n"),
                words);
  // One number, by which all ranks go the same way.
  EXPECT_SILENT(with("def step(x):\n    return model(x).sum() * torch.randint(0, 2, (1,))\n"),
                words);
}

// if is_due(seen): the function asks for seen % period.
TEST(ToDdpBatches, TellsCountsOfSamplesThatALogGoesBy) {
  const auto with = [](const std::string& lines, const std::string& asked = "count") {
    return told(
        {.above = "def is_due(count, step):\n    return " + asked + " % 1000 < 64\n",
         .before = "seen = 0\n",
         .loss = "model(x).sum()\n        n = x.size(0)\n        seen += n\n        " + lines});
  };
  EXPECT_TOLD(with("if is_due(seen, epoch):\n            report(loss)"),
              "counts the samples of one rank");
  EXPECT_TOLD(with("if seen % 1000 < 64:\n            report(loss)"),
              "counts the samples of one rank");
  EXPECT_SILENT(with("if is_due(seen, epoch):\n            report(loss)", "step"),
                "counts the samples");
  EXPECT_SILENT(with("if epoch % 1000 < 64:\n            report(seen)"), "counts the samples");
}

}  // namespace
}  // namespace bench::diagnose
