// Scripts whose calls lead in circles or have more ways than can be followed: what looks at callers
// and classes comes to an end. A test that does not end fails by its time limit.
#include <gtest/gtest.h>

#include <string>

#include "tests/fuzz/diagnose_input.hpp"

namespace bench::diagnose {
namespace {

const std::string kHead =
    "import os\n"
    "import torch\n"
    "import torch.distributed as dist\n"
    "import torch.multiprocessing as mp\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n";

const std::string kTraining =
    "dist.init_process_group('nccl')\n"
    "model = DDP(net)\n"
    "for x in loader:\n"
    "    model(x).backward()\n";

TEST(Tangled, FunctionsThatAllCallEachOther) {
  constexpr int kCount = 10;
  std::string script = kHead;
  for (int i = 0; i < kCount; ++i) {
    script += "def visit_" + std::to_string(i) + "(node):\n    if rank == 0: dist.barrier()\n";
    for (int j = 0; j < kCount; ++j)
      script += "    if node.kind == " + std::to_string(j) + ": return visit_" + std::to_string(j) +
                "(node.child)\n";
  }
  EXPECT_GT(run_as_script(script + kTraining), 0U);
}

// The same with a finding in each, and a loop that calls them.
TEST(Tangled, FunctionsThatAllCallEachOtherAndSave) {
  constexpr int kCount = 12;
  std::string script = kHead;
  for (int i = 0; i < kCount; ++i) {
    script += "def visit_" + std::to_string(i) + "(x):\n    torch.save(x.state_dict(), 'm.pt')\n" +
              "    os.makedirs('out')\n";
    for (int j = 0; j < kCount; ++j) script += "    visit_" + std::to_string(j) + "(x)\n";
  }
  EXPECT_GT(run_as_script(script + kTraining + "    visit_0(model)\n"), 0U);
}

// Each function calls the next one many times, in ranks that mp.spawn starts or never at all.
std::string chain(int functions, int calls, const std::string& last) {
  std::string script = kHead;
  for (int i = 0; i < functions; ++i) {
    script += "def step_" + std::to_string(i) + "(x):\n";
    for (int j = 0; j < calls; ++j)
      script += i + 1 < functions ? "    step_" + std::to_string(i + 1) + "(x)\n" : last;
  }
  return script;
}

TEST(Tangled, AChainOfManyCallsThatNobodyStarts) {
  EXPECT_GT(run_as_script(chain(8, 12, "    torch.save(x.state_dict(), 'm.pt')\n") + kTraining),
            0U);
}

TEST(Tangled, AChainOfManyCallsInSpawnedRanks) {
  EXPECT_GT(run_as_script(chain(9, 12, "    if dist.get_rank() == 0: dist.barrier()\n") +
                          "def work(rank):\n"
                          "    dist.init_process_group('nccl', rank=rank, world_size=2)\n"
                          "    model = DDP(net)\n"
                          "    step_0(model)\n"
                          "if __name__ == '__main__':\n"
                          "    mp.spawn(work, nprocs=2)\n"),
            0U);
}

TEST(Tangled, ClassesThatDeriveFromEachOther) {
  constexpr int kCount = 40;
  std::string script = kHead;
  for (int i = 0; i < kCount; ++i) {
    const std::string next = "Part" + std::to_string((i + 1) % kCount);
    script += "class Part" + std::to_string(i) + "(" + next + "):\n    def step(self, x):\n" +
              "        if dist.get_rank() == 0: dist.barrier()\n        " + next + "().step(x)\n";
  }
  EXPECT_GT(run_as_script(script + kTraining), 0U);
}

// The reduction's only caller is the function itself.
TEST(Tangled, AReductionThatCallsItselfAlone) {
  EXPECT_GT(run_as_script(kHead +
                          "from torch.utils.data import DataLoader, DistributedSampler\n"
                          "def share(x):\n"
                          "    dist.all_reduce(x)\n"
                          "    share(x)\n" +
                          kTraining +
                          "val_loader = DataLoader(data, sampler=DistributedSampler(data))\n"
                          "total = 0\n"
                          "with torch.no_grad():\n"
                          "    for x, y in val_loader:\n"
                          "        total += (model(x) == y).sum().item()\n"),
            0U);
}

}  // namespace
}  // namespace bench::diagnose
