// What bench diagnose shows and where: baselines, statistics, output files and exit codes.
#include <fcntl.h>
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

TEST_F(DiagnoseOutput, CountsAsGoneWhatWasLookedForOnly) {
  here_.write("src/other.py", std::string("import torch\n") + kWrap);
  const std::string baseline = (here_.path() / "baseline.json").string();
  const auto noted = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--baseline", baseline});
    return diagnose(arguments).err;
  };
  // Written in a subfolder.
  diagnose({".", "--format", "json", "--output-file", baseline}, "src");
  const auto json = nlohmann::json::parse(here_.read("baseline.json"));
  EXPECT_EQ(json["findings"][0]["file"], "other.py");
  EXPECT_EQ(json["findings"][0]["repository_path"], "src/other.py");
  EXPECT_TRUE(says(noted({"src/train.py"}), ": 2 findings known and not shown, 0 gone\n"));
  std::filesystem::remove(here_.path() / "src/other.py");
  EXPECT_TRUE(says(noted({"src/train.py"}), ": 2 findings known and not shown, 2 gone\n"));
  // Files that are there and could not be checked.
  here_.write("src/a.ipynb", R"({"cells": [{"cell_type": "code", "source": ["import torch\n", ")" +
                                 std::string(kWrap, 53) + R"("]}]})");
  write_baseline();
  here_.write("src/a.ipynb", "{\"cells\": [{\"torch.nn.DataParallel\"");
  EXPECT_TRUE(says(noted({"src"}), ": 2 findings known and not shown, 0 gone\n")) << noted({"src"});
  // What stands in no file.
  here_.bench_reading(std::string("import torch\n") + kWrap,
                      {"diagnose", "-", "--format", "json", "--output-file", baseline});
  EXPECT_TRUE(says(noted({"src"}), ": 0 findings known and not shown, 0 gone\n"));
}

TEST_F(DiagnoseOutput, SaysWhatIsNoBaseline) {
  expect_refusal({"src", "--baseline", ""}, "--baseline '': no such file");
  expect_refusal({"src", "--baseline", std::string(300, 'a')}, ": cannot be read");
  expect_refusal({"src", "--baseline", "none.json"}, "--baseline none.json: no such file");
  expect_refusal({"src", "--baseline", "src"}, "--baseline src: cannot be read");
  expect_refusal({"src", "--baseline", "src/train.py"}, "--baseline src/train.py:1: is no JSON");
  const auto refused = [&](const std::string& text, const std::string& error) {
    here_.write("b.json", text);
    expect_refusal({"src", "--baseline", "b.json"}, "--baseline b.json" + error);
  };
  refused("", ":1: is no JSON");
  refused("{\n\"version\": 1,\n", ":3: is no JSON");
  refused("{\"version\": 1e999, \"findings\": []}", ": holds a number that is out of range");
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
  expect_refusal({"src", "--output-file", ""}, "--output-file '': cannot be written", 3);
  expect_refusal({"src", "--output-file", "/dev/full"}, "No space left on device", 3);
  EXPECT_FALSE(here_.has("none"));
  if (::geteuid() == 0) return;  // whom no permission stops
  std::filesystem::create_directory(here_.path() / "locked");
  std::filesystem::permissions(here_.path() / "locked", std::filesystem::perms(0500));
  expect_refusal({"src", "--output-file", "locked/a.txt"}, "Permission denied", 3);
}

TEST_F(DiagnoseOutput, IsWrittenThroughLinksAndBehindWhatIsThere) {
  std::filesystem::create_symlink("src/new.txt", here_.path() / "link.txt");  // to nothing
  diagnose({"src", "--output-file", "link.txt"});
  EXPECT_TRUE(std::filesystem::is_symlink(here_.path() / "link.txt"));
  EXPECT_TRUE(says(here_.read("src/new.txt"), "src/train.py:2"));
  std::filesystem::remove(here_.path() / "src/new.txt");
  EXPECT_TRUE(says(diagnose({"src", "--output-file", "-"}).out, "src/train.py:2"));
  EXPECT_FALSE(here_.has("-"));
  // A descriptor of a file to which a shell appends.
  here_.write("log", "before\n");
  const int log = ::open((here_.path() / "log").c_str(), O_WRONLY | O_APPEND);
  diagnose({"src", "--output-file", "/dev/fd/" + std::to_string(log)});
  ::close(log);
  EXPECT_TRUE(here_.read("log").starts_with("before\nsrc/train.py:2"));
  const std::string name(250, 'a');
  EXPECT_EQ(diagnose({"src", "--output-file", name}).exit_code, 1);
  EXPECT_TRUE(here_.has(name));
}

TEST_F(DiagnoseOutput, ReplacesNothingThatIsRead) {
  write_baseline();
  here_.write("bench.toml", "[diagnose]\n");
  here_.write("src/config.json", "{\"trainer\": {\"gpus\": 2}}\n");
  here_.write("tool.py", "import torch\n");
  const std::string script = here_.read("src/train.py");
  expect_refusal({"src", "--output-file", "src/train.py"}, "is one of the files that are checked");
  expect_refusal({"src", "--output-file", "src/../src/config.json"}, "that are checked");
  expect_refusal({"src", "--output-file", "tool.py"}, "is a script, which would be lost");
  expect_refusal({"src", "--output-file", "bench.toml"}, "holds the settings");
  expect_refusal({"src", "--baseline", "baseline.json", "--output-file", "./baseline.json"},
                 "is the baseline");
  EXPECT_EQ(here_.read("src/train.py"), script);
  for (const char* format : {"json", "sarif", "gitlab"})  // of an earlier run
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(diagnose({".", "--format", format, "--output-file", "out.json"}).exit_code, 1);
  const std::vector<std::string> flags{
      "diagnose", "-", "--stdin-filename", "src/train.py", "--output-file", "src/train.py"};
  EXPECT_EQ(here_.bench_reading("import torch\n", flags).exit_code, 2);
  auto fixed = flags;
  fixed.push_back("--fix");
  EXPECT_EQ(here_.bench_reading("import torch\n", fixed).exit_code, 0);
  EXPECT_EQ(here_.read("src/train.py"), "import torch\n");
}

TEST_F(DiagnoseOutput, LeavesReadOnlyFilesAlone) {
  const std::string text = "import lightning as L\ntrainer = L.Trainer(gpus=2)\n";
  const auto all_read = std::filesystem::perms(0444);
  for (const char* file : {"old.txt", "src/a.py"}) {
    here_.write(file, text);
    std::filesystem::permissions(here_.path() / file, all_read);
  }
  expect_refusal({"src", "--output-file", "old.txt"}, "cannot be written: is read-only", 3);
  here_.write("src/b.py", text);
  for (const char* action : {"--fix", "--add-ignores"}) {
    const Answer answer = here_.bench({"diagnose", "src", action, "--select", "LIT001"});
    EXPECT_EQ(answer.exit_code, 2) << action;
    EXPECT_TRUE(says(answer.err, "src/a.py: cannot be written: is read-only; no file is changed"));
  }
  for (const char* file : {"old.txt", "src/a.py", "src/b.py"}) EXPECT_EQ(here_.read(file), text);
}

TEST_F(DiagnoseOutput, EndsWithTwoWhereANamedFileCouldNotBeChecked) {
  here_.write("bad.ipynb", "{\"cells\":[{\"torch");
  for (const char* action : {"--fix", "--diff", "--explain-trainer", "--to-ddp"}) {
    const Answer answer = here_.bench({"diagnose", "bad.ipynb", action});
    EXPECT_EQ(answer.exit_code, 2) << action;
    EXPECT_TRUE(says(answer.err, "bench: error: bad.ipynb: is no notebook")) << action;
  }
  for (const char* action : {"--explain-trainer", "--to-ddp"})
    EXPECT_TRUE(says(here_.bench({"diagnose", "src", action, "--exclude", "src"}).err,
                     "src: nothing is checked: all is excluded by 'src' (--exclude)"));
}

TEST_F(DiagnoseOutput, ShowsTheStepsToDdpWithoutWritingThem) {
  here_.write("src/train.py", std::string("import torch\nnet = torch.nn.Linear(1, 1)\n") + kWrap);
  const std::string text = here_.read("src/train.py");
  const Answer answer = here_.bench({"diagnose", "src/train.py", "--to-ddp", "--fix", "--diff"});
  EXPECT_TRUE(says(answer.out, "+++ src/train.py\n")) << answer.out;
  EXPECT_EQ(here_.read("src/train.py"), text);
}

// The wrapper of two scripts stands in a file that both import.
TEST_F(DiagnoseOutput, RewritesTheFilesOfAProjectForDdp) {
  here_.write("src/nets.py",
              "import torch\n\n\ndef make(net):\n    return torch.nn.DataParallel(net)\n");
  const std::string script =
      "import torch\nfrom nets import make\nnet = make(torch.nn.Linear(1, 1).cuda())\n"
      "for x in data:\n    net(x).sum().backward()\n    optimizer.step()\n";
  here_.write("src/train.py", script);
  const Answer shown = here_.bench({"diagnose", "src/train.py", "--to-ddp", "--diff"});
  EXPECT_TRUE(says(shown.out, "(src/nets.py:5)")) << shown.out;
  EXPECT_TRUE(says(shown.out, "+++ src/nets.py\n")) << shown.out;
  const Answer written = here_.bench({"diagnose", "src/train.py", "--to-ddp", "--fix"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_TRUE(says(here_.read("src/nets.py"), "return DistributedDataParallel(net"));
  EXPECT_TRUE(says(here_.read("src/train.py"), "init_process_group"));
}

TEST_F(DiagnoseOutput, NamesFilesWithBlanksAsPatchesDo) {
  here_.write("a b.py", "import lightning as L\ntrainer = L.Trainer(gpus=2)\n");
  const Answer answer = here_.bench({"diagnose", "a b.py", "--diff", "--select", "LIT001"});
  EXPECT_TRUE(answer.out.starts_with("--- a b.py\t\n+++ a b.py\t\n@@")) << answer.out;
}

TEST_F(DiagnoseOutput, NamesAFileForALaunchLineWhereOneIsNeeded) {
  const Answer answer =
      here_.bench({"diagnose", "src/train.py", "--select", "LAU005", "--format", "gitlab",
                   "--launch", "CUDA_VISIBLE_DEVICES=0,,1 python src/train.py"});
  const auto json = nlohmann::json::parse(answer.out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["location"]["path"], "src/train.py");
}

TEST_F(DiagnoseOutput, RefusesWhatWouldNotBeDone) {
  write_baseline();
  expect_refusal({"src", "--fix", "--statistics"}, "--statistics: cannot be combined with --fix");
  expect_refusal({"src", "--fix", "--baseline", "baseline.json"}, "--baseline: cannot be combined");
  expect_refusal({"src", "--fix", "--output-file", "a"}, "--output-file: cannot be combined with");
  expect_refusal({"src", "--fix", "--add-ignores"}, "--fix: cannot be combined with --add-ignores");
  expect_refusal({"src", "--to-ddp", "--add-ignores"}, "--add-ignores: cannot be combined");
  expect_refusal({"src", "--statistics", "--cost"}, "--cost: cannot be combined with --statistics");
  expect_refusal({"src", "--statistics", "--machine", "a"}, "--machine: cannot be combined with");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& error) {
    auto all = arguments;
    all.insert(all.begin(), "diagnose");
    const Answer answer = here_.bench(all);
    EXPECT_EQ(answer.exit_code, 2) << error;
    EXPECT_TRUE(says(answer.err, error)) << answer.err;
  };
  for (const std::string action : {"--to-ddp", "--explain-trainer"}) {
    const std::string error = ": cannot be combined with " + action;
    refused({"src", action, "--exit-zero"}, "--exit-zero" + error);
    refused({"src", action, "--severity", "error"}, "--severity" + error);
    refused({"src", action, "--confidence", "certain"}, "--confidence" + error);
    refused({"src", action, "--select", "DP001"}, "--select" + error);
    refused({"src", action, "--ignore", "DP001"}, "--ignore" + error);
  }
  refused({"src", "--severity", ""}, "--severity: unknown value ''");
}

}  // namespace
}  // namespace bench::cli_test
