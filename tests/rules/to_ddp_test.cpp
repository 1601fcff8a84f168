// bench diagnose --to-ddp on the scripts of tests/rules/to_ddp: NAME.py becomes NAME.ddp.py, which
// BENCH_UPDATE_GOLDEN=1 writes anew. That the result trains is checked by torch.to_ddp.
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/rules/rewritten.hpp"

namespace bench::diagnose {
namespace {

const std::filesystem::path kScripts = std::filesystem::path(BENCH_RULE_TESTS) / "to_ddp";

std::string read(const std::filesystem::path& path) {
  std::stringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

using Files = RewrittenFiles;

Rewrite rewrite(const Files& files) { return rewritten(files); }
Rewrite rewrite(const std::string& script) { return rewrite(Files{{"train.py", script}}); }

// The script after all steps.
std::string script_of(const Rewrite& made) {
  const auto found = made.texts.find("train.py");
  return found == made.texts.end() ? std::string() : found->second;
}

void expect_document(const std::filesystem::path& path, const std::string& text) {
  if (std::getenv("BENCH_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  EXPECT_EQ(text, read(path)) << path;
}

TEST(ToDdp, RewritesTheScriptsAsTheirDocumentsSay) {
  std::size_t scripts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kScripts)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".py" || path.stem().extension() == ".ddp") continue;
    ++scripts;
    std::filesystem::path expected = path;
    expected.replace_extension(".ddp.py");
    expect_document(expected, script_of(rewrite(read(path))));
  }
  EXPECT_GE(scripts, 4U);
}

// models/net.py, as paths below the folder.
std::vector<std::string> files_below(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
    if (file.path().extension() == ".py")
      out.push_back(file.path().lexically_relative(folder).generic_string());
  return out;
}

// A folder NAME with the script train.py becomes NAME.ddp, with the files that are changed.
TEST(ToDdp, RewritesTheFilesThatAScriptImports) {
  std::size_t projects = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kScripts)) {
    const std::filesystem::path& folder = entry.path();
    if (!entry.is_directory() || folder.extension() == ".ddp") continue;
    ++projects;
    Files files;
    for (const std::string& name : files_below(folder)) files[name] = read(folder / name);
    const Rewrite made = rewrite(files);
    for (const auto& [name, text] : made.texts)
      expect_document(folder.string() + ".ddp/" + name, text);
    for (const std::string& name : files_below(folder.string() + ".ddp"))
      EXPECT_TRUE(made.texts.contains(name)) << name;
  }
  EXPECT_GE(projects, 2U);
}

TEST(ToDdp, NamesTheLinesOfTheScriptAsItIs) {
  const Rewrite made = rewrite(read(kScripts / "main_function.py"));
  const std::string text = render_rewrite("train.py", made);
  for (const char* line :
       {"1. Import what DDP needs (line 1)", "Join the process group (line 35)",
        "Wrap in DistributedDataParallel (line 21)",
        "Give each rank its share of the data (line 12)", "Save on rank 0 (line 40)",
        "Call set_epoch in the epoch loop (line 38)", "Load to the CPU (line 20)",
        "torchrun --standalone --nproc-per-node=gpu train.py"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(ToDdp, TellsWhatIsLeft) {
  const Rewrite made = rewrite(
      "import torch\n"
      "from torch.utils.data import DataLoader\n"
      "from torchvision.datasets import CIFAR10\n"
      "model = torch.nn.DataParallel(torch.nn.Linear(8, 2).cuda())\n"
      "data = CIFAR10('data', download=True)\n"
      "loader = DataLoader(data, batch_size=64)\n"
      "for epoch in range(9):\n"
      "    for x, y in loader:\n"
      "        criterion(model(x), y).backward()\n"
      "        optimizer.step()\n");
  ASSERT_EQ(made.left.size(), 1U) << render_rewrite("train.py", made);
  EXPECT_TRUE(made.left.front().text.starts_with("DDP026")) << made.left.front().text;
  EXPECT_NE(render_rewrite("train.py", made).find("Left to you"), std::string::npos);
}

TEST(ToDdp, CountsTheEpochsOfALoopWithoutANumber) {
  for (const auto& [head, rewritten] :
       {std::pair{"while step < 100:\n",
                  "data_epoch = 0\nwhile step < 100:\n"
                  "    loader.sampler.set_epoch(data_epoch)\n"
                  "    data_epoch += 1\n"},
        std::pair{"for _ in range(9):\n",
                  "for data_epoch in range(9):\n    loader.sampler.set_epoch(data_epoch)\n"}}) {
    const Rewrite made = rewrite(
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "model = torch.nn.DataParallel(Net().cuda())\n"
        "loader = DataLoader(data, batch_size=64, shuffle=True)\n"
        "step = 0\n" +
        std::string(head) +
        "    for x, y in loader:\n"
        "        criterion(model(x), y).backward()\n"
        "        optimizer.step()\n"
        "        step += 1\n");
    EXPECT_NE(script_of(made).find(rewritten), std::string::npos) << script_of(made);
  }
}

// What people write around the same few lines: each text has to stand in the result.
TEST(ToDdp, FindsAPlaceForEachLine) {
  const std::string model = "model = nn.DataParallel(nn.Linear(8, 2)).cuda()\n";
  const std::string loader = "loader = DataLoader(data, batch_size=64, shuffle=True)\n";
  const std::string loop =
      "for epoch in range(2):\n"
      "    for x, y in loader:\n"
      "        model(x).sum().backward()\n"
      "        optimizer.step()\n";
  const std::string torch = "from torch import nn\nfrom torch.utils.data import DataLoader\n";
  const std::string rank = "local_rank = int(os.environ.get(\"LOCAL_RANK\", 0))\n";
  struct Written {
    std::string script;
    std::string expected;
  };
  for (const auto& [script, expected] : std::vector<Written>{
           // The rank is known above its first use, wherever the last import stands.
           {"import torch\n" + torch + "GPU = torch.device('cuda:0')\nimport data\n" + model +
                loader + loop,
            rank + "GPU = torch.device(\"cuda\", local_rank)\n"},
           {"import os; import torch\n" + torch + model + loader + loop, rank},
           {"import torch\n" + torch + "def name():\n    import os\n    return os.name\n" + model +
                loader + loop,
            "import os\nimport torch.distributed as dist\n"},
           {"import torch\n" + torch + model + "loader = DataLoader(data, 64, True)\n" + loop,
            "DataLoader(data, 64 // dist.get_world_size(), False, "
            "sampler=DistributedSampler(data))"},
           {"import torch\n" + torch + model +
                "loader = DataLoader(data, 64, sampler=None, shuffle=True)\n" + loop,
            "DataLoader(data, 64 // dist.get_world_size(), sampler=DistributedSampler(data))"},
           {"import torch\n" + torch + model + loader + loop +
                "run(on_end=lambda m: torch.save(m, 'a.pt'))\n",
            "\nrun(on_end=lambda m: torch.save(m, 'a.pt'))\n"},
           {"import torch\n" + torch + "model = nn.DataParallel(a if c else b)\n" + loader + loop,
            "DistributedDataParallel((a if c else b).to(local_rank)"},
       })
    EXPECT_NE(script_of(rewrite(script)).find(expected), std::string::npos)
        << expected << "\n"
        << script_of(rewrite(script));
}

TEST(ToDdp, RewritesNothingWhereTheRanksCannotMeet) {
  const Rewrite made =
      rewrite({{"train.py", "from engine import run\nif __name__ == '__main__': run()\n"},
               {"engine.py",
                "from torch import nn\n"
                "def run():\n"
                "    model = nn.DataParallel(nn.Linear(8, 2).cuda())\n"
                "    for x in data:\n"
                "        model(x).sum().backward()\n"
                "        optimizer.step()\n"}});
  EXPECT_TRUE(made.texts.empty());
  EXPECT_NE(made.refusal.find("process group"), std::string::npos) << made.refusal;
}

TEST(ToDdp, LeavesScriptsWithAModeForDdpAlone) {
  const Rewrite made = rewrite(
      "import torch.distributed as dist\n"
      "from torch.nn import DataParallel\n"
      "if args.distributed:\n"
      "    dist.init_process_group('nccl')\n"
      "else:\n"
      "    model = DataParallel(model)\n");
  EXPECT_TRUE(made.steps.empty());
  EXPECT_NE(made.refusal.find("line 4"), std::string::npos) << made.refusal;
}

// The way to DDP must not bring in what the rules call mistakes of the group or the device.
TEST(ToDdp, BringsNoMistakeOfItsOwnIntoTheCasesOfThePages) {
  std::size_t rewritten = 0;
  for (const pitfalls::Rule& rule : pitfalls::all_rules())
    for (const pitfalls::PageCase& each : pitfalls::cases_of(pitfalls::page_of(rule))) {
      if (each.files.size() != 1) continue;
      const std::string& script = each.files.begin()->second;
      const Rewrite made = rewrite(script);
      if (made.steps.empty()) continue;
      ++rewritten;
      EXPECT_LE(SyntaxTree::parse(script_of(made)).has_errors(),
                SyntaxTree::parse(script).has_errors())
          << each.title << "\n"
          << script_of(made);
      for (const Remaining& left : made.left)
        for (const char* own : {"DDP005", "DDP017", "DDP025", "DDP043"})
          EXPECT_FALSE(left.text.starts_with(own)) << rule.id << ": " << each.title << "\n"
                                                   << script_of(made);
    }
  EXPECT_GE(rewritten, 40U);
}

}  // namespace
}  // namespace bench::diagnose
