// What bench diagnose shows and where: baselines, statistics, output files and exit codes.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

const char* const kWrap = "model = torch.nn.DataParallel(net, device_ids=[0, 1])\n";

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class DiagnoseOutput : public testing::Test {
 protected:
  DiagnoseOutput() {
    for (const char* folder : {"src", ".git"})
      std::filesystem::create_directory(here_.path() / folder);
    here_.write("src/train.py", std::string("import torch\n") + kWrap);
  }

  Answer diagnose(std::vector<std::string> arguments, const std::string& folder = ".") const {
    arguments.insert(arguments.begin(), {"diagnose", "--select", "DP001,DP017"});
    return here_.bench(arguments, {{"PWD", folder}});
  }
  void write_baseline() const {
    diagnose({"src", "--format", "json", "--output-file", "baseline.json"});
  }
  void expect_refusal(const std::vector<std::string>& arguments, const std::string& error,
                      int exit_code = 2) const {
    const Answer answer = diagnose(arguments);
    EXPECT_EQ(answer.exit_code, exit_code) << error;
    EXPECT_EQ(answer.out, "") << error;
    EXPECT_TRUE(says(answer.err, error)) << answer.err;
  }

  const Workspace here_;
};

TEST_F(DiagnoseOutput, LeavesOutWhatABaselineKnows) {
  write_baseline();
  const Answer same = diagnose({"src", "--baseline", "baseline.json"});
  EXPECT_EQ(same.exit_code, 0);
  EXPECT_EQ(same.out, "no pitfalls found in 1 file\n");
  EXPECT_EQ(same.err, "bench: note: baseline.json: 2 findings known and not shown, 0 gone\n");
  // Lines move and are indented; one more of the same is new.
  here_.write("src/train.py", std::string("import torch\n\n\nif True:\n    ") + kWrap);
  EXPECT_EQ(diagnose({"src", "--baseline", "baseline.json"}).exit_code, 0);
  here_.write("src/train.py", std::string("import torch\n") + kWrap + kWrap);
  const Answer more = diagnose({"src", "--baseline", "baseline.json", "--format", "json"});
  EXPECT_EQ(more.exit_code, 1);
  const auto json = nlohmann::json::parse(more.out);
  ASSERT_EQ(json["findings"].size(), 2U);
  EXPECT_EQ(json["findings"][0]["line"], 3);
  // The rule, the file and the text count.
  here_.write("src/other.py", std::string("import torch\n") + kWrap);
  EXPECT_TRUE(says(diagnose({"src", "--baseline", "baseline.json"}).out, "src/other.py:2"));
}

TEST_F(DiagnoseOutput, CountsWhatIsGoneOfABaseline) {
  here_.write("src/other.py", std::string("import torch\n") + kWrap);
  write_baseline();
  const auto noted = [&](const std::vector<std::string>& arguments) {
    auto all = arguments;
    all.insert(all.end(), {"--baseline", "baseline.json"});
    return diagnose(all).err;
  };
  here_.write("src/train.py", "import torch\n");
  EXPECT_TRUE(says(noted({"src"}), ": 2 findings known and not shown, 2 gone\n")) << noted({"src"});
  // Not what was not looked for.
  EXPECT_TRUE(says(noted({"src/other.py"}), ": 2 findings known and not shown, 0 gone\n"));
  EXPECT_TRUE(
      says(noted({"src", "--ignore", "DP017"}), ": 1 finding known and not shown, 1 gone\n"));
  EXPECT_TRUE(says(noted({"src", "--severity", "warning"}), ": 1 finding known and not shown, 1 "));
  std::filesystem::remove(here_.path() / "src/train.py");
  EXPECT_TRUE(says(noted({"src"}), "known and not shown, 2 gone\n"));
}

TEST_F(DiagnoseOutput, KnowsABaselineFromEveryFolderOfTheRepository) {
  write_baseline();
  const std::string baseline = (here_.path() / "baseline.json").string();
  EXPECT_EQ(diagnose({"train.py", "--baseline", baseline}, "src").exit_code, 0);
  EXPECT_EQ(diagnose({(here_.path() / "src").string(), "--baseline", baseline}).exit_code, 0);
  std::filesystem::remove_all(here_.path() / ".git");  // then by the path that is shown
  EXPECT_EQ(diagnose({"src", "--baseline", baseline}).exit_code, 0);
  EXPECT_EQ(diagnose({"train.py", "--baseline", baseline}, "src").exit_code, 1);
}

TEST_F(DiagnoseOutput, SaysWhatIsNoBaseline) {
  expect_refusal({"src", "--baseline", "none.json"}, "--baseline none.json: no such file");
  expect_refusal({"src", "--baseline", "src"}, "--baseline src: cannot be read");
  expect_refusal({"src", "--baseline", "src/train.py"}, "--baseline src/train.py:1: is no JSON");
  const auto refused = [&](const std::string& text, const std::string& error) {
    here_.write("b.json", text);
    expect_refusal({"src", "--baseline", "b.json"}, "--baseline b.json" + error);
  };
  refused("", ":1: is no JSON");
  refused("{\n\"version\": 1,\n", ":3: is no JSON");
  refused("[]", ": holds no findings; expected what `bench diagnose --format json` writes");
  refused("{\"version\": \"2.1.0\", \"runs\": []}", ": holds no findings");
  refused("{\"version\": 2, \"findings\": []}", ": has version 2 instead of 1");
  refused("{\"version\": 1, \"findings\": [1]}", ": findings[0] has no rule or no file");
  const std::string old = R"({"version": 1, "findings": [{"rule": "DP001", "file": "a.py")";
  refused(old + "}]}", ": findings[0] has no fingerprint, as in earlier versions");
  refused(old + R"(, "fingerprint": "x:1"}]})", ": findings[0] has no fingerprint");
  refused(old + R"(, "fingerprint": 3}]})", ": findings[0] has no fingerprint");
}

TEST_F(DiagnoseOutput, CountsByRule) {
  here_.write("src/other.py",
              std::string("import torch\n") + kWrap + "second = torch.nn.DataParallel(net)\n");
  const Answer answer = diagnose({"src", "--statistics"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.out,
            "3  DP001  dataparallel-multi-gpu\n2  DP017  hard-coded-device-list\n\n"
            "0 errors, 2 warnings, 3 info in 2 files\n");
  here_.write("empty.py", "import torch\n");
  EXPECT_EQ(diagnose({"empty.py", "--statistics"}).out, "no pitfalls found in 1 file\n");
  for (const char* format : {"json", "sarif", "github", "markdown", "junit", "gitlab"})
    expect_refusal({"src", "--statistics", "--format", format},
                   std::string("--statistics: only with --format text, not with ") + format);
}

TEST_F(DiagnoseOutput, ExitsWithZeroWhereItIsAskedTo) {
  EXPECT_EQ(diagnose({"src"}).exit_code, 1);
  const Answer answer = diagnose({"src", "--exit-zero"});
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_TRUE(says(answer.out, "warning DP017"));
  EXPECT_EQ(diagnose({"src/none.py", "--exit-zero"}).exit_code, 2);  // errors stay errors
  here_.write("broken.ipynb", "{");
  EXPECT_EQ(diagnose({"broken.ipynb", "--exit-zero"}).exit_code, 2);
}

TEST_F(DiagnoseOutput, GoesIntoAFile) {
  const std::string shown = diagnose({"src"}).out;
  const Answer answer = diagnose({"src", "--output-file", "out.txt"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.out, "");
  EXPECT_EQ(here_.read("out.txt"), shown);
  here_.write("real.txt", "before");
  std::filesystem::permissions(here_.path() / "real.txt", std::filesystem::perms(0600));
  std::filesystem::create_symlink("real.txt", here_.path() / "link.txt");
  diagnose({"src", "--output-file", "link.txt"});
  EXPECT_EQ(here_.read("real.txt"), shown);
  EXPECT_TRUE(std::filesystem::is_symlink(here_.path() / "link.txt"));
  EXPECT_EQ(std::filesystem::status(here_.path() / "real.txt").permissions(),
            std::filesystem::perms(0600));
  EXPECT_EQ(diagnose({"src", "--output-file", "/dev/stdout"}).out, shown);
  EXPECT_EQ(diagnose({"src", "--output-file", "/dev/null"}).exit_code, 1);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(DiagnoseOutput, LeavesAnOlderFileWhereItFails) {
  here_.write("old.json", "before");
  expect_refusal({"src/none.py", "--output-file", "old.json"}, "no such file");
  expect_refusal({"src", "--launch", "make", "--output-file", "old.json"}, "--launch");
  EXPECT_EQ(here_.read("old.json"), "before");
  expect_refusal({"src", "--output-file", "none/a.txt"},
                 "--output-file none/a.txt: cannot be written: no such folder: none", 3);
  expect_refusal({"src", "--output-file", "src"}, "--output-file src: cannot be written", 3);
  expect_refusal({"src", "--output-file", ""}, "--output-file : cannot be written", 3);
  expect_refusal({"src", "--output-file", "/dev/full"}, "No space left on device", 3);
  EXPECT_FALSE(here_.has("none"));
  if (::geteuid() == 0) return;  // whom no permission stops
  std::filesystem::create_directory(here_.path() / "locked");
  std::filesystem::permissions(here_.path() / "locked", std::filesystem::perms(0500));
  expect_refusal({"src", "--output-file", "locked/a.txt"}, "Permission denied", 3);
}

TEST_F(DiagnoseOutput, RefusesWhatWouldNotBeDone) {
  write_baseline();
  expect_refusal({"src", "--fix", "--statistics"}, "--statistics: cannot be combined with --fix");
  expect_refusal({"src", "--fix", "--baseline", "baseline.json"}, "--baseline: cannot be combined");
  expect_refusal({"src", "--fix", "--output-file", "a"}, "--output-file: cannot be combined with");
  expect_refusal({"src", "--fix", "--add-ignores"}, "--fix: cannot be combined with --add-ignores");
  expect_refusal({"src", "--to-ddp", "--add-ignores"}, "--add-ignores: cannot be combined");
  expect_refusal({"src", "--baseline", "baseline.json", "--output-file", "./baseline.json"},
                 "is the baseline");
}

}  // namespace
}  // namespace bench::cli_test
