// Where bench diagnose --to-ddp makes the ranks wait for a file of rank 0, and where it only says
// that they do not.
#include "tests/rules/to_ddp_remaining.hpp"

namespace bench::diagnose {
namespace {

const char* const kOptions =
    "import argparse\n"
    "parser = argparse.ArgumentParser()\n"
    "parser.add_argument('--epochs', type=int, default=3)\n"
    "parser.add_argument('--best', type=float, default=0.0)\n"
    "args = parser.parse_args()\n";

const char* const kSave =
    "    score = validate(model)\n"
    "    if score > best:\n"
    "        best = score\n"
    "        torch.save(model.state_dict(), 'out/best.pt')\n";

const char* const kLoad = "model.load_state_dict(torch.load('out/best.pt'))\n";

Script best_of_run(const std::string& end) {
  return {.above = kOptions, .before = "best = 0\n", .behind = kSave, .end = end};
}

TEST(ToDdpWaits, WaitsWhereEveryRankComesBy) {
  const std::string load = kLoad;
  for (const std::string& end :
       {load, "for fold in range(args.epochs):\n    " + load,
        "def finish():\n    " + load + "def main():\n    finish()\nmain()\n",
        "if args.best > 0.5:\n    " + load}) {
    const Script script = best_of_run(end);
    EXPECT_TOLD(rewritten_text(script), "dist.barrier()\n");
    EXPECT_SILENT(told(script), "without a barrier");
  }
}

// One rank alone in a barrier hangs: each of these is told instead.
TEST(ToDdpWaits, OnlyTellsWhereARankMayComeAlone) {
  const std::string load = kLoad;
  for (const std::string& end :
       {"match round(best):\n    case 1:\n        " + load + "    case _:\n        pass\n",
        "n = random.randint(1, 4)\nfor i in range(n):\n    " + load,
        "for i in range(len(good)):\n    " + load,
        "for i in range(5):\n    " + load + "    if validate(model) > 0.5:\n        sys.exit(0)\n",
        "for i in range(5):\n    " + load + "    if i > best:\n        raise SystemExit\n",
        "def check(score):\n    if score < 0.5:\n        sys.exit(0)\ncheck(validate(model))\n" +
            load,
        "for attempt in range(3):\n    " + load + "    if validate(model) > 0.5:\n        break\n",
        "for n in range(3):\n    if validate(model) > 0.5:\n        break\nelse:\n    " + load,
        "setattr(args, 'best', validate(model))\nif args.best > 0.5:\n    " + load,
        "vars(args)['best'] = validate(model)\nif args.best > 0.5:\n    " + load}) {
    const Script script = best_of_run(end);
    EXPECT_SILENT(rewritten_text(script), "barrier()");
    EXPECT_TOLD(told(script), "without a barrier");
  }
}

TEST(ToDdpWaits, OnlyTellsInFunctionsThatARankMayLeaveOrRunAlone) {
  const std::string finish =
      "def finish():\n"
      "    torch.save(model.state_dict(), 'out/last.pt')\n"
      "    print('saved')\n"
      "    model.load_state_dict(torch.load('out/last.pt'))\n";
  const auto script = [&](const std::string& end) {
    return Script{.above = "def when(score, then):\n    if score > 0.5:\n        then()\n",
                  .end = finish + end};
  };
  EXPECT_TOLD(rewritten_text(script("finish()\n")), "dist.barrier()\n");
  EXPECT_SILENT(rewritten_text(script("when(validate(model), finish)\nfinish()\n")), "barrier()");
  EXPECT_SILENT(rewritten_text({.end = "def run():\n"
                                       "    for n in range(3):\n"
                                       "        if validate(model) > 0.5:\n"
                                       "            return None\n" +
                                       finish.substr(finish.find('\n') + 1) + "run()\n"}),
                "barrier()");
}

// The name of the file alone is seen on both sides.
TEST(ToDdpWaits, TellsLoadsOfAFileByItsName) {
  const auto with = [](const std::string& name) {
    return told(
        {.above = "from savers import Best\nbest = Best('out/models')\n",
         .behind = "    best.log(model.module.state_dict())\n",
         .end = "model.module.load_state_dict(torch.load(os.path.join(root, '" + name + "')))\n"},
        {{"savers.py",
          "import os, torch\n"
          "def save(state, path, name):\n"
          "    torch.save(state, os.path.join(path, name))\n"
          "class Best:\n"
          "    def __init__(self, path, name='best_model.pth'):\n"
          "        self.path = path\n"
          "        self.name = name\n"
          "    def log(self, state):\n"
          "        save(state, self.path, self.name)\n"}});
  };
  const std::string words = "every rank uses it here without waiting";
  EXPECT_TOLD(with("best_model.pth"), words);
  EXPECT_SILENT(with("pretrained.pth"), words);
  EXPECT_SILENT(with("' + name + '.pth"), words);  // an ending alone
}

}  // namespace
}  // namespace bench::diagnose
