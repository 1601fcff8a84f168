// bench diagnose --to-ddp where a run begins, saves, resumes, fails and ends: scripts of sacred's,
// states on the CPU, failures that nobody sees, options of loaders.
#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

// The script has a command line of sacred's in the place of a guard.
std::string experiment(const std::string& decorator, const std::string& end) {
  return "import torch\n"
         "from torch import nn\n"
         "from torch.utils.data import DataLoader\n"
         "from sacred import Experiment\n"
         "ex = Experiment()\n" +
         decorator +
         "def link_prediction(data, lr):\n"
         "    model = nn.DataParallel(Net().cuda())\n"
         "    optimizer = torch.optim.SGD(model.parameters(), lr=lr)\n"
         "    train_loader = DataLoader(data, batch_size=64, shuffle=True)\n"
         "    for epoch in range(9):\n"
         "        for x, y in train_loader:\n"
         "            optimizer.zero_grad()\n"
         "            model(x).mean().backward()\n"
         "            optimizer.step()\n" +
         end;
}

TEST(ToDdpLifecycle, RewritesExperimentsOfSacred) {
  for (const auto& script :
       {experiment("@ex.command\n", "ex.run_commandline()\n"),
        experiment("@ex.main\n", "if __name__ == '__main__':\n    ex.run_commandline()\n"),
        experiment("@ex.automain\n", "")}) {
    const Rewrite made = rewritten({{"train.py", script}});
    EXPECT_EQ(made.refusal, "") << script;
    EXPECT_TOLD(made.texts.at("train.py"), "init_process_group");
    // Its name is that of the task.
    EXPECT_TOLD(made.texts.at("train.py"), "DistributedSampler(data)");
    EXPECT_TOLD(made.texts.at("train.py"), "set_epoch(epoch)");
  }
  // A file that registers nothing offers a function to others.
  EXPECT_TOLD(rewritten({{"train.py", experiment("", "")}}).refusal, "a module that others import");
}

TEST(ToDdpLifecycle, SavesCopiesInPlaceOfMovingTheModel) {
  const std::string copy = "{key: value.cpu() for key, value in net.module.state_dict().items()}";
  const auto text = [](const std::string& state) {
    return rewritten_text({.above = "def save(net):\n"
                                    "    torch.save(" +
                                    state +
                                    ", 'net.pt')\n"
                                    "    net.cuda()\n",
                           .behind = "    save(model)\n"});
  };
  EXPECT_TOLD(text("net.module.cpu().state_dict()"), copy);
  EXPECT_TOLD(text("net.module.to('cpu').state_dict()"), copy);
  EXPECT_SILENT(text("net.module.state_dict()"), "value.cpu()");
  EXPECT_SILENT(text("net.module.half().state_dict()"), "value.cpu()");
  // At the end a run may go on with the model on the CPU, and self.module may have no wrapper.
  EXPECT_SILENT(rewritten_text({.end = "torch.save(model.module.cpu().state_dict(), 'net.pt')\n"}),
                "value.cpu()");
  EXPECT_SILENT(
      rewritten_text({.above = "class Average:\n"
                               "    def __init__(self, net):\n"
                               "        self.module = net\n"
                               "    def save(self):\n"
                               "        torch.save(self.module.cpu().state_dict(), 'mean.pt')\n",
                      .before = "average = Average(Net())\n",
                      .behind = "    average.save()\n"}),
      "value.cpu()");
  // Other moves of the model are told, on rank 0 as well.
  EXPECT_TOLD(told({.behind = "    if int(os.environ['RANK']) == 0:\n"
                              "        model.cpu()\n"
                              "        torch.save(model.state_dict(), 'net.pt')\n"
                              "        model.cuda()\n"}),
              "the wrapped model moves to the CPU here");
}

TEST(ToDdpLifecycle, TellsFailuresThatNobodySees) {
  const std::string words = "training runs in this try";
  const auto list = [](const std::string& handler) {
    return told({.before = "import sys\n"
                           "def report(e):\n"
                           "    print(e)\n"
                           "    sys.exit(1)\n"
                           "def work():\n"
                           "    for epoch in range(9):\n"
                           "        for x, y in loader:\n"
                           "            optimizer.zero_grad()\n"
                           "            model(x).mean().backward()\n"
                           "            optimizer.step()\n"
                           "try:\n    work()\n" +
                           handler});
  };
  EXPECT_TOLD(list("except:\n    print('failed')\n"), words);
  EXPECT_TOLD(list("except Exception as e:\n    print(e)\n"), words);
  EXPECT_TOLD(list("except torch.cuda.OutOfMemoryError:\n    print('too large')\n"), words);
  for (const char* handler :
       {"except Exception as e:\n    print(e)\n    raise\n", "except:\n    os._exit(1)\n",
        "except Exception as e:\n    report(e)\n", "except Exception:\n    quit()\n",
        "except Exception:\n    failed = True\n", "except KeyboardInterrupt:\n    pass\n",
        "except ImportError:\n    pass\n", "finally:\n    print('end')\n"})
    EXPECT_SILENT(list(handler), words) << handler;
  EXPECT_SILENT(told({.end = "try:\n    upload('a.pt')\nexcept:\n    pass\n"}), words);
  EXPECT_SILENT(told({.above = "def evaluate(model, loader):\n"
                               "    with torch.no_grad():\n"
                               "        for x, y in loader:\n"
                               "            print((model(x) == y).sum())\n",
                      .end = "try:\n    evaluate(model, loader)\nexcept:\n    pass\n"}),
                words);
}

TEST(ToDdpLifecycle, LoadsAveragesToTheGpuOfTheRank) {
  const auto text = [](const std::string& kept, const std::string& base = "object") {
    return rewritten_text({.above = "class Average(" + base +
                                    "):\n"
                                    "    def __init__(self, net):\n"
                                    "        self.shadow = {}\n"
                                    "    def load_state_dict(self, state):\n" +
                                    kept,
                           .before = "average = Average(model)\n"
                                     "states = torch.load('checkpoint.pth')\n"
                                     "model.load_state_dict(states[0])\n"
                                     "optimizer.load_state_dict(states[1])\n"
                                     "average.load_state_dict(states[2])\n"});
  };
  EXPECT_TOLD(text("        self.shadow = state\n"), "storage.cuda()");
  EXPECT_TOLD(text("        self.shadow = state['shadow']\n"), "storage.cuda()");
  EXPECT_SILENT(rewritten_text({.before = "states = torch.load('checkpoint.pth')\n"
                                          "model.load_state_dict(states['net'])\n"
                                          "semantic_classes = states['classes']\n"}),
                "storage.cuda()");
  EXPECT_TOLD(text("        for key in state:\n            self.shadow[key].copy_(state[key])\n"),
              "map_location=\"cpu\"");
}

TEST(ToDdpLifecycle, LeavesTheGroupWhereThereIsOne) {
  const auto text = [](const std::string& above) {
    Script script;
    std::string all = script.text();
    const std::string::size_type cut = all.find("model = Net()");
    std::string body;
    for (std::string::size_type at = cut, end = 0; at < all.size(); at = end + 1) {
      end = all.find('\n', at);
      body += "    " + all.substr(at, end - at) + "\n";
    }
    return rewritten({{"train.py", all.substr(0, cut) + "def main(mode):\n" + above + body +
                                       "if __name__ == '__main__':\n    main('train')\n"}})
        .texts.at("train.py");
  };
  EXPECT_TOLD(text("    if mode == 'prepare':\n        prepare()\n        return\n"),
              "if dist.is_initialized():\n        dist.destroy_process_group()");
  EXPECT_SILENT(text("    print(mode)\n"), "is_initialized()");
}

TEST(ToDdpLifecycle, KeepsTheOptionOfTheOrder) {
  const auto text = [](const std::string& option) {
    return rewritten_text(
        {.above = "import argparse\n"
                  "parser = argparse.ArgumentParser()\n"
                  "parser.add_argument('--mix', " +
                  option +
                  ")\n"
                  "args = parser.parse_args()\n",
         .loader = "loader = DataLoader(data, batch_size=64, shuffle=args.mix)\n"});
  };
  EXPECT_TOLD(text("type=bool, default=True"), "DistributedSampler(data, shuffle=args.mix)");
  EXPECT_TOLD(text("action='store_true'"), "DistributedSampler(data, shuffle=args.mix)");
  EXPECT_TOLD(rewritten_text({}), "DistributedSampler(data)");
}

// A size that is changed behind the product is divided by the ranks as any other.
TEST(ToDdpLifecycle, DividesWhatANameHolds) {
  const auto text = [](const std::string& behind) {
    return rewritten_text({.loader = "size = 8\n"
                                     "batch_size = size * torch.cuda.device_count()\n" +
                                     behind +
                                     "loader = DataLoader(data, batch_size=batch_size)\n"});
  };
  EXPECT_TOLD(text("batch_size //= 2\n"), "batch_size=batch_size // ");
  EXPECT_TOLD(text("size = 32\n"), "batch_size=batch_size // ");
}

TEST(ToDdpLifecycle, TakesTheRanksGpuInPlaceOfNumbersAlone) {
  const auto text = [](const std::string& list) {
    return rewritten_text(
        {.above = "devices = " + list + "\n", .before = "critic = Net().to(devices[0])\n"});
  };
  EXPECT_SILENT(text("[0, 1]"), "to(devices[0])");
  EXPECT_TOLD(text("['cpu', 'cuda']"), "to(devices[0])");
}

TEST(ToDdpLifecycle, CountsEpochsOfBothZippedLoaders) {
  const std::string maker =
      "class Data(torch.utils.data.Dataset):\n"
      "    def loader(self):\n"
      "        train_loader = DataLoader(self, batch_size=64, shuffle=True)\n"
      "        return train_loader\n";
  const auto text = [&](const std::string& batches) {
    return rewritten_text({.above = maker,
                           .loader = "first = Data().loader()\nsecond = Data().loader()\n",
                           .batches = batches});
  };
  const std::string both = text("zip(first, second)");
  EXPECT_TOLD(both, "first.sampler.set_epoch(epoch)");
  EXPECT_TOLD(both, "second.sampler.set_epoch(epoch)");
  EXPECT_SILENT(text("first"), "second.sampler.set_epoch(epoch)");
}

// What one mode freezes another trains: DDP refuses the one and is needed for the other.
TEST(ToDdpLifecycle, DecidesByTheRunWhetherAModelTrains) {
  const auto text = [](const std::string& above) {
    return rewritten_text({.before = above + "encoder = nn.DataParallel(encoder)\n",
                           .loss = "nn.functional.cross_entropy(model(encoder(x)), y)"});
  };
  const std::string freeze = "for p in encoder.parameters(): p.requires_grad = False\n";
  const std::string asked = " if any(weight.requires_grad for weight in encoder.parameters()) else";
  EXPECT_TOLD(text("encoder = Net().cuda()\nif mode == 'continue':\n    " + freeze), asked);
  EXPECT_SILENT(text("encoder = Net().cuda()\n" + freeze), asked);
  // Where it is wrapped at all, it is frozen.
  const std::string both =
      rewritten_text({.before = "if distill:\n"
                                "    encoder = Net().cuda()\n    " +
                                freeze + "    encoder = nn.DataParallel(encoder)\n",
                      .loss = "model(encoder(x)).sum()"});
  EXPECT_SILENT(both, asked);
  EXPECT_SILENT(text("encoder = Net().cuda()\n"), asked);
}

TEST(ToDdpLifecycle, KeepsQuestionsForAnyGpu) {
  const auto text = [](const std::string& given) {
    return rewritten_text({.net = "Net()\nuse_gpu = " + given + "\n",
                           .wrap = "if use_gpu:\n    model = nn.DataParallel(model)\n"});
  };
  EXPECT_TOLD(text("torch.cuda.is_available()"), "if use_gpu:\n    model = Distributed");
  EXPECT_TOLD(text("len(gpus) > 1"), "is_initialized()");
}

}  // namespace
}  // namespace bench::diagnose
