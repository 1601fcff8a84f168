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

}  // namespace
}  // namespace bench::cli_test
