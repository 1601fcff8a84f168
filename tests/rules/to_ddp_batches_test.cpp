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
  EXPECT_TOLD(with("y = y[: args.batch_size]"), words);
  EXPECT_TOLD(with("skip = x.size(0) != args.batch_size"), words);
  EXPECT_TOLD(with("z = torch.randn(n, 8)", "n = args.batch_size\n"), words);
  // Another setting, the tensor's own size, noise for pictures, a count of steps.
  EXPECT_SILENT(with("z = torch.randn(args.gen_batch, 8)"), words);
  EXPECT_SILENT(with("z = torch.randn(x.size(0), 8)"), words);
  EXPECT_SILENT(with("pass", "fixed_noise = torch.randn(args.batch_size, 8)\n"), words);
  EXPECT_SILENT(with("pass", "steps = len(data) // args.batch_size\n"), words);
  EXPECT_SILENT(with("seen = step * args.batch_size"), words);
}

TEST(ToDdpBatches, TellsPartsOfTheBatch) {
  const std::string words = "this is a part of the whole";
  EXPECT_TOLD(told({.above = kOptions,
                    .loader = kLoader,
                    .before = "sub_batch = int(args.batch_size / args.steps)\n"}),
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

TEST(ToDdpBatches, TellsListsThatEachRankShuffles) {
  const auto with = [](const std::string& lines) {
    return told({.above = "import random\n", .before = lines});
  };
  EXPECT_TOLD(with("random.shuffle(train_files)\n"), "a random order of its own");
  EXPECT_SILENT(with("random.seed(1)\nrandom.shuffle(train_files)\n"), "a random order");
  EXPECT_SILENT(with("random.shuffle(colors)\n"), "a random order");
  EXPECT_SILENT(with("random.shuffle(test_files)\n"), "a random order");
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

}  // namespace
}  // namespace bench::diagnose
