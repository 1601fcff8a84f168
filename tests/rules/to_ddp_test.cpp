// bench diagnose --to-ddp on the scripts of tests/rules/to_ddp: NAME.py becomes NAME.ddp.py, which
// BENCH_UPDATE_GOLDEN=1 writes anew. That the result trains is checked by torch.to_ddp.
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/to_ddp/rewrite.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace bench::diagnose {
namespace {

const std::filesystem::path kScripts = std::filesystem::path(BENCH_RULE_TESTS) / "to_ddp";

std::string read(const std::filesystem::path& path) {
  std::stringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

using Files = std::map<std::string, std::string>;

Rewrite rewrite(const Files& files) {
  Rewrite out;
  const DiagnoseOptions options;
  for_each_program_of_texts(files, "train.py", options, [&](const Program& program) {
    out = rewrite_to_ddp(program, [&](const Files& texts, const RewrittenVisit& visit) {
      Files changed = files;
      for (const auto& [file, text] : texts) changed[file] = text;
      const auto found = diagnose_texts(changed, "train.py", options);
      for_each_program_of_texts(changed, "train.py", options,
                                [&](const Program& rewritten) { visit(rewritten, found); });
    });
  });
  return out;
}

Rewrite rewrite(const std::string& script) { return rewrite(Files{{"train.py", script}}); }

// The script after all steps.
std::string script_of(const Rewrite& made) {
  const auto found = made.texts.find("train.py");
  return found == made.texts.end() ? std::string() : found->second;
}

TEST(ToDdp, RewritesTheScriptsAsTheirDocumentsSay) {
  std::size_t scripts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kScripts)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".py" || path.stem().extension() == ".ddp") continue;
    ++scripts;
    const Rewrite made = rewrite(read(path));
    std::filesystem::path expected = path;
    expected.replace_extension(".ddp.py");
    if (std::getenv("BENCH_UPDATE_GOLDEN") != nullptr) std::ofstream(expected) << script_of(made);
    EXPECT_EQ(script_of(made), read(expected)) << path;
  }
  EXPECT_GE(scripts, 4U);
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
