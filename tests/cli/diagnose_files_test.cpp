// Which files bench diagnose checks: excluded ones, rules that are not wanted in some, and text
// from standard input in place of a file.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

// DP001 (a note) and DP017, both on line 4.
const char* const kScript =
    "import torch\n"
    "import torchvision.models as models\n"
    "from torch.utils.data import DataLoader\n"
    "model = torch.nn.DataParallel(models.resnet50(), device_ids=[0, 1]).cuda()\n"
    "loader = DataLoader(data, batch_size=64)\n"
    "for x, y in loader:\n"
    "    model(x).sum().backward()\n";

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class DiagnoseFiles : public testing::Test {
 protected:
  DiagnoseFiles() {
    for (const char* folder : {"src", "third_party", ".git"})
      std::filesystem::create_directory(here_.path() / folder);
    for (const char* file : {"train.py", "src/other.py", "third_party/vendored.py"})
      here_.write(file, kScript);
  }

  Answer diagnose(std::vector<std::string> arguments, const std::string& folder = ".") const {
    arguments.insert(arguments.begin(), {"diagnose", "--select", "DP001,DP017"});
    return here_.bench(arguments, {{"PWD", folder}});
  }
  void expect_refusal(const std::vector<std::string>& arguments, const std::string& error) const {
    const Answer answer = diagnose(arguments);
    EXPECT_EQ(answer.exit_code, 2) << error;
    EXPECT_EQ(answer.out, "") << error;
    EXPECT_TRUE(says(answer.err, error)) << answer.err;
  }

  const Workspace here_;
};

TEST_F(DiagnoseFiles, AreLeftOutByAFlag) {
  const Answer all = diagnose({"."});
  EXPECT_TRUE(says(all.out, "third_party/vendored.py:4"));
  EXPECT_TRUE(says(all.out, "in 3 files\n")) << all.out;
  for (const char* glob : {"third_party", "third_party/**", "vendored.py", "/third_*/", "v*.py"}) {
    const Answer answer = diagnose({".", "--exclude", glob});
    EXPECT_FALSE(says(answer.out, "vendored.py")) << glob;
    EXPECT_TRUE(says(answer.out, "src/other.py:4")) << glob;
    EXPECT_TRUE(says(answer.out, "in 2 files\n")) << glob;
    EXPECT_EQ(answer.err, "") << glob;
  }
  const Answer several = diagnose({".", "--exclude", "src,vendored.py", "--exclude", "none"});
  EXPECT_TRUE(says(several.out, "in 1 file\n")) << several.out;
  // To the current folder.
  EXPECT_TRUE(says(diagnose({"..", "--exclude", "/src"}, "src").out, "in 3 files\n"));
  EXPECT_TRUE(says(diagnose({"..", "--exclude", "../src"}, "src").out, "in 2 files\n"));
  EXPECT_TRUE(says(diagnose({here_.path().string(), "--exclude", "src/*.py"}).out, "in 2 files\n"));
}

TEST_F(DiagnoseFiles, AreLeftOutBySettings) {
  here_.write("bench.toml", "[diagnose]\nexclude = [\"third_party/**\"]\n");
  EXPECT_TRUE(says(diagnose({"."}).out, "in 3 files\n"));  // with the settings themselves
  EXPECT_TRUE(says(diagnose({"."}, "src").out, "in 1 file\n"));
  EXPECT_TRUE(says(diagnose({".", "--exclude", "src"}).out, "in 2 files\n"));
  const Answer none = diagnose({"."}, "third_party");
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_EQ(none.out, "no pitfalls found in 0 files\n");
  EXPECT_EQ(none.err,
            "bench: note: .: nothing is checked: all is excluded by 'third_party/**' "
            "(../bench.toml:2: exclude)\n");
  std::filesystem::remove(here_.path() / "bench.toml");
  here_.write("pyproject.toml", "[tool.bench.diagnose]\nexclude = [\"src\", \"third_party\"]\n");
  EXPECT_TRUE(says(diagnose({"."}).out, "in 2 files\n"));
}

TEST_F(DiagnoseFiles, ThatAreNamedAreChecked) {
  const Answer answer =
      diagnose({"third_party/vendored.py", "src", "--exclude", "third_party,src"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_TRUE(says(answer.out, "third_party/vendored.py:4")) << answer.out;
  EXPECT_FALSE(says(answer.out, "other.py")) << answer.out;
  EXPECT_TRUE(says(answer.err, "src: nothing is checked: all is excluded by 'src' (--exclude)"))
      << answer.err;
}

// However it is spelt: a program of the folder imports it by another path.
TEST_F(DiagnoseFiles, ThatAreNamedAreCheckedByEveryPath) {
  here_.write("src/main.py", "import torch\nimport other\nother.model(x).sum().backward()\n");
  const std::string other = (here_.path() / "src/other.py").string();
  const Answer answer = diagnose({"src/main.py", other, "--exclude", "src"});
  EXPECT_TRUE(says(answer.out, "\nsrc/other.py:4:") || answer.out.starts_with("src/other.py:4:"))
      << answer.out;
}

TEST_F(DiagnoseFiles, ThatAreLeftOutAreReadWhereTheyAreImported) {
  here_.write("src/main.py",
              "import torch\nfrom wrap import wrap\nmodel = wrap(net)\n"
              "torch.save(model.state_dict(), 'a.pt')\n");
  here_.write("src/wrap.py",
              "import torch\ndef wrap(net):\n"
              "    return torch.nn.DataParallel(net, device_ids=[0, 1])\n");
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"diagnose", "src/main.py", "--select", "DP017,DDP041"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return here_.bench(arguments);
  };
  EXPECT_TRUE(says(run({}).out, "src/wrap.py:3"));
  const Answer excluded = run({"--exclude", "wrap.py"});
  EXPECT_FALSE(says(excluded.out, "wrap.py:3")) << excluded.out;
  EXPECT_TRUE(says(excluded.out, "src/main.py:4")) << excluded.out;
}

TEST_F(DiagnoseFiles, ThatAreLeftOutAreNotFixed) {
  here_.write("src/old.py", "import torch\nmodel = torch.nn.DataParallel(net, [0, 1])\n");
  const Answer answer = here_.bench({"diagnose", "src", "--diff", "--exclude", "src"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.out, "");
}

TEST_F(DiagnoseFiles, NameThePlaceOfWhatIsNoGlob) {
  expect_refusal({".", "--exclude", "[a"}, "bench: error: --exclude: '[a' has a [ without its ]");
  expect_refusal({".", "--exclude", "!src"}, "--exclude: '!src' begins with !");
  here_.write("a.toml", "[diagnose]\n\nexclude = [\"ok\", \"\"]\n");
  expect_refusal({".", "--config", "a.toml"}, "a.toml:3: exclude: '' is empty");
  here_.write("b.toml", "[diagnose]\nexclude = \"src\"\n");
  expect_refusal({".", "--config", "b.toml"},
                 "b.toml:2: diagnose.exclude: expected a list of globs");
  here_.write("c.toml", "[diagnose]\nexclude = [1]\n");
  expect_refusal({".", "--config", "c.toml"},
                 "c.toml:2: diagnose.exclude: expected a list of strings");
}

TEST_F(DiagnoseFiles, MayBeNamedByAbsoluteGlobsAndNotByBraces) {
  const std::string absolute = (here_.path() / "third_party").string();
  EXPECT_FALSE(says(diagnose({".", "--exclude", absolute}).out, "vendored.py"));
  EXPECT_TRUE(says(diagnose({".", "--exclude", "{{name}}"}).out, "vendored.py"));
  expect_refusal({".", "--exclude", "{src,third_party}"}, "--exclude: '{src' has alternatives");
  here_.write("a.toml", "[diagnose]\nexclude = [\n  \"ok\",\n  \"{a,b}.py\",\n]\n");
  expect_refusal({".", "--config", "a.toml"}, "a.toml:4: exclude: '{a,b}.py' has alternatives");
}

TEST_F(DiagnoseFiles, OfSettingsAreReadOrRefused) {
  here_.write("bench.toml", "[diagnose]\nignore = [\"DP001\"]\n");
  here_.write("src/bench.toml", "[diagnose]\n");  // empty, and the nearest all the same
  EXPECT_TRUE(says(diagnose({"."}, "src").out, "DP001"));
  here_.write("src/bench.toml", "[tool.bench.diagnose]\nignore = [\"DP001\"]\n");
  const Answer answer = diagnose({"."}, "src");
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_TRUE(says(answer.err, "bench.toml:1: tool.bench: expected settings below [diagnose]"));
  std::filesystem::remove(here_.path() / "bench.toml");
  std::filesystem::create_directory(here_.path() / "bench.toml");
  expect_refusal({"."}, "bench.toml: cannot be read; expected a file of settings");
}

TEST_F(DiagnoseFiles, HaveRulesOfTheirOwnThatAreNotWanted) {
  here_.write("bench.toml",
              "[diagnose.per-file-ignores]\n\"src/*.py\" = [\"DP017\"]\nvendored = [\"DP\"]\n"
              "\"third_party/**\" = [\"hard-coded-device-list\", \"throughput\"]\n");
  const Answer answer = diagnose({"."});
  EXPECT_TRUE(says(answer.out, "src/other.py:4:9: info DP001")) << answer.out;
  EXPECT_FALSE(says(answer.out, "src/other.py:4:61")) << answer.out;
  EXPECT_FALSE(says(answer.out, "vendored.py:")) << answer.out;
  EXPECT_TRUE(says(answer.out, "train.py:4:61: warning DP017")) << answer.out;
  EXPECT_EQ(diagnose({"src/other.py"}).exit_code, 0);  // where it is named, too
}

TEST_F(DiagnoseFiles, NameThePlaceOfRulesThatDoNotExist) {
  here_.write("a.toml", "[diagnose.per-file-ignores]\n\n\"src/*.py\" = [\"DP\", \"DP917\"]\n");
  expect_refusal({".", "--config", "a.toml"},
                 "a.toml:3: per-file-ignores: 'src/*.py': unknown rule 'DP917'");
  here_.write("b.toml", "[diagnose.per-file-ignores]\n\"[a\" = [\"DP\"]\n");
  expect_refusal({".", "--config", "b.toml"}, "b.toml:2: per-file-ignores: '[a' has a [");
  here_.write("c.toml", "[diagnose.per-file-ignores]\n\"a.py\" = \"DP\"\n");
  expect_refusal({".", "--config", "c.toml"},
                 "c.toml:2: per-file-ignores: 'a.py': expected a list of rules");
  here_.write("d.toml", "[diagnose]\nper-file-ignores = [\"DP\"]\n");
  expect_refusal({".", "--config", "d.toml"}, "d.toml:2: per-file-ignores: expected a table");
  here_.write("e.toml", "[diagnose.per-file-ignore]\n\"a\" = [\"DP\"]\n");
  expect_refusal({".", "--config", "e.toml"}, "did you mean per-file-ignores");
}

class DiagnoseInput : public DiagnoseFiles {
 protected:
  Answer read(const std::string& text, std::vector<std::string> arguments,
              const std::string& folder = ".") const {
    arguments.insert(arguments.begin(), {"diagnose", "-"});
    return here_.bench_reading(text, arguments, {{"PWD", folder}});
  }
};

TEST_F(DiagnoseInput, IsAScriptWithoutSurroundings) {
  here_.write("bench.toml", "[diagnose]\nignore = [\"DP001\"]\n");
  const Answer answer = read(kScript, {});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_TRUE(says(answer.out, "<stdin>:4:61: warning DP017")) << answer.out;
  EXPECT_FALSE(says(answer.out, "DP001")) << answer.out;  // the settings of the current folder
  EXPECT_TRUE(says(answer.out, "in 1 file\n")) << answer.out;
  here_.write("helper.py", "import torch\nmodel = torch.nn.DataParallel(net, device_ids=[0, 1])\n");
  EXPECT_EQ(read("import helper, torch\n", {}).out, "no pitfalls found in 1 file\n");
  EXPECT_EQ(read("", {}).exit_code, 0);
  const Answer job = read("#!/bin/bash\nexport CUDA_VISIBLE_DEVICES=0,,1\ntorchrun train.py\n", {});
  EXPECT_TRUE(says(job.out, "<stdin>:2:8: error LAU005")) << job.out;
}

TEST_F(DiagnoseInput, StandsInPlaceOfAFile) {
  here_.write("src/helper.py",
              "import torch\ndef wrap(net):\n"
              "    return torch.nn.DataParallel(net, device_ids=[0, 1])\n");
  here_.write("src/run.sh", "torchrun --nproc-per-node 4 main.py\n");
  here_.write("src/bench.toml", "[diagnose]\nselect = [\"DP017\", \"LAU002\"]\n");
  here_.write("src/main.py", "syntax error(\n");  // as it was saved
  const std::string text =
      "import argparse\nimport torch\nfrom helper import wrap\nmodel = wrap(net)\n"
      "parser = argparse.ArgumentParser()\nparser.add_argument('--local_rank', type=int)\n"
      "torch.distributed.init_process_group('nccl')\nprint(parser.parse_args().local_rank)\n";
  for (const char* name : {"src/main.py", "./src/main.py"}) {
    const Answer answer = read(text, {"--stdin-filename", name});
    EXPECT_TRUE(says(answer.out, "src/main.py:6")) << answer.out;  // by the launch line
    EXPECT_TRUE(says(answer.out, "src/helper.py:3:"));             // by the import
    EXPECT_FALSE(says(answer.out, "DP001")) << answer.out;         // by the settings
    EXPECT_EQ(answer.err, "");
  }
  // A file that is not there yet.
  EXPECT_TRUE(says(read(text, {"--stdin-filename", "src/new.py"}).out, "src/helper.py:3"));
  EXPECT_TRUE(says(read(kScript, {"--stdin-filename", "none/new.py"}).out, "none/new.py:4"));
  // What is named is checked.
  const Answer excluded = read(text, {"--stdin-filename", "src/main.py", "--exclude", "src"});
  EXPECT_TRUE(says(excluded.out, "src/main.py:6")) << excluded.out;
  EXPECT_FALSE(says(excluded.out, "src/helper.py")) << excluded.out;
  const Answer notebook = read("{", {"--stdin-filename", "a.ipynb"});
  EXPECT_EQ(notebook.exit_code, 2);
  EXPECT_TRUE(says(notebook.err, "bench: error: a.ipynb: is no notebook")) << notebook.err;
}

TEST_F(DiagnoseInput, IsFixedOnStandardOutput) {
  const std::string text = "import lightning as L\ntrainer = L.Trainer(gpus=2)\n";
  const std::string fixed =
      "import lightning as L\ntrainer = L.Trainer(accelerator=\"gpu\", devices=2)\n";
  const std::string name = "src/other.py";
  const Answer fix = read(text, {"--fix", "--select", "LIT001", "--stdin-filename", name});
  EXPECT_EQ(fix.exit_code, 0);
  EXPECT_EQ(fix.out, fixed);
  EXPECT_EQ(fix.err, "1 fix applied; 0 findings left\n");
  EXPECT_EQ(here_.read(name), kScript);
  const Answer nothing = read(kScript, {"--fix", "--select", "LIT001"});
  EXPECT_EQ(nothing.out, kScript);
  const Answer diff = read(text, {"--diff", "--select", "LIT001", "--stdin-filename", name});
  EXPECT_EQ(diff.exit_code, 1);
  EXPECT_TRUE(diff.out.starts_with("--- src/other.py\n+++ src/other.py\n")) << diff.out;
  const Answer ignored = read(text, {"--add-ignores", "--select", "LIT001"});
  EXPECT_EQ(ignored.out,
            "import lightning as L\ntrainer = L.Trainer(gpus=2)  # bench: ignore[LIT001]\n");
  read(text, {"--fix", "--select", "LIT001", "--output-file", "fixed.py"});
  EXPECT_EQ(here_.read("fixed.py"), fixed);
}

TEST_F(DiagnoseInput, IsRefusedWhereItCannotBeMeant) {
  const auto expect = [&](const std::string& text, const std::vector<std::string>& arguments,
                          const std::string& error) {
    const Answer answer = read(text, arguments);
    EXPECT_EQ(answer.exit_code, 2) << error;
    EXPECT_EQ(answer.out, "") << error;
    EXPECT_TRUE(says(answer.err, error)) << answer.err;
  };
  expect("", {"train.py"}, "-: cannot be combined with other paths");
  expect("", {"--to-ddp"}, "--to-ddp: cannot be combined with -");
  expect("", {"--stdin-filename", "src"}, "--stdin-filename 'src': expected the path of a file");
  expect("", {"--stdin-filename", ""}, "--stdin-filename ''");
  expect(std::string((10U << 20) + 1, '#'), {}, "-: standard input is larger than 10 MiB");
  expect_refusal({"train.py", "--stdin-filename", "a.py"},
                 "--stdin-filename: expected - among the paths");
}

}  // namespace
}  // namespace bench::cli_test
