// Comments that silence findings: which silence nothing, and --add-ignores, which writes them.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class DiagnoseIgnores : public testing::Test {
 protected:
  Answer diagnose(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "diagnose");
    return here_.bench(arguments);
  }
  // What is said of the comments in a script, with the folder in which it stands.
  std::string said(const std::string& text, std::vector<std::string> arguments = {}) const {
    here_.write("train.py", text);
    arguments.insert(arguments.begin(), ".");
    return diagnose(arguments).err;
  }
  // The script with its findings silenced, after a second run has found nothing.
  std::string silenced(const std::string& text, const std::string& file = "train.py") const {
    here_.write(file, text);
    EXPECT_NE(diagnose({file}).out, "no pitfalls found in 1 file\n");
    EXPECT_EQ(diagnose({file, "--add-ignores"}).exit_code, 0);
    const Answer again = diagnose({file});
    EXPECT_EQ(again.out, "no pitfalls found in 1 file\n");
    EXPECT_EQ(again.err, "");
    return here_.read(file);
  }

  const Workspace here_;
  const std::string import_ = "import torch\n";
  const std::string wrap_ = "model = torch.nn.DataParallel(net, device_ids=[0, 1])";
};

TEST_F(DiagnoseIgnores, ThatSilenceNothingAreTold) {
  EXPECT_EQ(said(import_ + wrap_ + "  # bench: ignore[DP001, DP017]\n"), "");
  EXPECT_EQ(said(import_ + wrap_ + "  # bench: ignore\n"), "");
  EXPECT_EQ(said(import_ + wrap_ + "  # bench: ignore[DP001, DDP018, missing-set-epoch]\n"),
            "bench: note: train.py:2: ignore[DDP018, missing-set-epoch] silences nothing\n");
  EXPECT_EQ(said(import_ + "print(1)  # bench: ignore\n"),
            "bench: note: train.py:2: ignore silences nothing\n");
  EXPECT_EQ(said(import_ + "# bench: ignore[DP001] above the line\n" + wrap_ + "\n"),
            "bench: note: train.py:2: ignore[DP001] silences nothing\n");
  EXPECT_EQ(said(import_ + "'''# bench: ignore[DP001]'''\n"), "");  // no comment
}

TEST_F(DiagnoseIgnores, OfRulesThatDidNotRunAreNot) {
  const std::string idle = import_ + "print(1)  # bench: ignore[DDP018]\n";
  EXPECT_TRUE(says(said(idle), "silences nothing"));
  EXPECT_TRUE(says(said(idle, {"--select", "DDP018"}), "silences nothing"));
  EXPECT_EQ(said(idle, {"--select", "DP001"}), "");
  EXPECT_EQ(said(idle, {"--ignore", "DDP"}), "");
  EXPECT_EQ(said(import_ + "print(1)  # bench: ignore[DDP018, DP001]\n", {"--select", "DP001"}),
            "");
  EXPECT_EQ(said(import_ + "print(1)  # bench: ignore\n", {"--ignore", "DP001"}), "");
  // What is not severe enough to be shown is silenced all the same.
  EXPECT_EQ(said(import_ + wrap_ + "  # bench: ignore[DP001]\n", {"--severity", "error"}), "");
  here_.write("bench.toml", "[diagnose.per-file-ignores]\n\"*.py\" = [\"DDP018\"]\n");
  EXPECT_EQ(said(idle), "");
}

TEST_F(DiagnoseIgnores, OfUnknownRulesAreToldAlways) {
  const std::string unknown = import_ + "print(1)  # bench: ignore[DP917, LIT]\n";
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, {"--select", "DDP018"}, {"--severity", "error"}}) {
    const std::string told = said(unknown, flags);
    EXPECT_TRUE(says(told, "train.py:2: ignore[DP917]: unknown rule 'DP917'; did you mean DP017"))
        << told;
    EXPECT_TRUE(says(told, "train.py:2: ignore[LIT]: unknown rule 'LIT'")) << told;
  }
}

TEST_F(DiagnoseIgnores, OfFilesThatWereNotGivenAreNot) {
  here_.write("helper.py", import_ + "print(1)  # bench: ignore[DDP018]\n");
  here_.write("train.py", "import torch\nimport helper\nprint(helper)\n");
  EXPECT_EQ(diagnose({"train.py"}).err, "");
  EXPECT_TRUE(says(diagnose({"."}).err, "helper.py:2: ignore[DDP018] silences nothing"));
  EXPECT_EQ(diagnose({".", "--exclude", "helper.py"}).err, "");
  here_.write("broken.py", import_ + wrap_ + "  # bench: ignore[DDP018]\ndef f(:\n");
  EXPECT_FALSE(says(diagnose({"broken.py"}).err, "silences nothing"));
}

// The programs that import it are not there: what the rules would say is not known.
TEST_F(DiagnoseIgnores, OfDefinitionsAreToldWhereSomethingUsesThem) {
  here_.write("helper.py", import_ + "def f(x):\n    return x  # bench: ignore[DDP018]\n");
  EXPECT_EQ(diagnose({"helper.py"}).err, "");
  EXPECT_EQ(diagnose({"."}).err, "");
  EXPECT_EQ(said("import torch\nimport helper\nprint(helper.f(1))\n"),
            "bench: note: helper.py:3: ignore[DDP018] silences nothing\n");
  here_.write("cut.ipynb", "{\"cells\": [{\"import torch\"");  // which may use it, too
  EXPECT_FALSE(says(diagnose({"."}).err, "silences nothing"));
}

TEST_F(DiagnoseIgnores, OfHelpersAreToldWithAllOfTheProjectOnly) {
  const std::string helper =
      "import torch\nimport sys\nsys.path.append('..')\n"
      "def train_one_epoch(model, loader, optimizer, n):\n"
      "    for i, (x, y) in enumerate(loader):\n        model(x).sum().backward()\n"
      "        if (i + 1) % n == 0:  # bench: ignore[DDP010]\n            optimizer.step()\n";
  std::filesystem::create_directory(here_.path() / "eng");
  here_.write("eng/engine.py", helper);
  here_.write("eng/run.py", "import torch\nimport engine\nprint(engine)\n");
  for (const char* path : {"eng/engine.py", "eng"}) EXPECT_EQ(diagnose({path}).err, "") << path;
  EXPECT_EQ(here_.bench_reading(helper, {"diagnose", "-", "--stdin-filename", "eng/engine.py"}).err,
            "");
  EXPECT_TRUE(says(diagnose({"."}).err, "eng/engine.py:7: ignore[DDP010] silences nothing"));
  std::filesystem::create_directory(here_.path() / ".git");  // a root above the folder
  EXPECT_EQ(here_.bench({"diagnose", "."}, {{"PWD", "eng"}}).err, "");
  EXPECT_TRUE(says(here_.bench({"diagnose", ".."}, {{"PWD", "eng"}}).err, "silences nothing"));
}

TEST_F(DiagnoseIgnores, OfANamedProgramAreToldWithoutThoseOfLaunchLines) {
  const auto named = [&](const std::string& text, std::vector<std::string> arguments = {}) {
    here_.write("valid.py", text);
    arguments.insert(arguments.begin(), "valid.py");
    return diagnose(arguments).err;
  };
  const std::string model = import_ + "def main():\n    print(1)  # bench: ignore[";
  const std::string guard = "]\nif __name__ == '__main__':\n    main()\n";
  EXPECT_EQ(named(model + "DP007" + guard), "");  // another program may wrap it
  const std::string wrap = "]\n    net = torch.nn.DataParallel(net)  # bench: ignore[DP001";
  EXPECT_EQ(named(model + "DDP018" + wrap + guard),
            "bench: note: valid.py:3: ignore[DDP018] silences nothing\n");
  EXPECT_EQ(named(model + "DDP018" + wrap + guard, {"--launch", "python valid.py"}), "");
  EXPECT_EQ(named(model + "LAU003" + wrap + guard), "");
  EXPECT_TRUE(says(diagnose({"."}).err, "valid.py:3: ignore[LAU003] silences nothing"));
}

TEST_F(DiagnoseIgnores, ThatSilenceNothingStandInDocuments) {
  here_.write("train.py", import_ + wrap_ + "  # bench: ignore[DP001, DP017, DDP018]\n");
  const auto json = nlohmann::json::parse(diagnose({"train.py", "--format", "json"}).out);
  ASSERT_EQ(json["notices"].size(), 1U);
  EXPECT_EQ(json["notices"][0]["line"], 2);
  EXPECT_EQ(json["notices"][0]["message"], "ignore[DDP018] silences nothing");
  const auto sarif = nlohmann::json::parse(diagnose({"train.py", "--format", "sarif"}).out);
  const auto& said = sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"][0];
  EXPECT_EQ(said["locations"][0]["physicalLocation"]["region"]["startLine"], 2);
  EXPECT_TRUE(says(diagnose({"train.py", "--format", "github"}).out, "file=train.py,line=2::"));
}

TEST_F(DiagnoseIgnores, OfNotebooksNameTheLineOfTheFile) {
  here_.write("a.ipynb", R"({"cells": [
 {"cell_type": "code", "source": ["import torch\n",
   "x = 1  # bench: ignore[DDP018]\n"]}
], "nbformat": 4})");
  EXPECT_EQ(diagnose({"."}).err, "bench: note: a.ipynb:3: ignore[DDP018] silences nothing\n");
}

TEST_F(DiagnoseIgnores, InShellScriptsSilenceTheirCommandAlone) {
  const std::string job = "CUDA_VISIBLE_DEVICES=0,,1 torchrun train.py";
  const std::string comment = "# bench: ignore[LAU005]\n";
  const auto found = [&](const std::string& text) {
    here_.write("run.sh", text);
    return diagnose({"run.sh"}).out;
  };
  EXPECT_EQ(found(job + "  " + comment), "no pitfalls found in 1 file\n");
  EXPECT_EQ(found("  " + comment + job + "\n"), "no pitfalls found in 1 file\n");
  EXPECT_TRUE(says(found(job + "  " + comment + job + "\n"), "run.sh:2:22: error LAU005"));
}

TEST_F(DiagnoseIgnores, AreWrittenBehindTheLine) {
  const std::string all = "# bench: ignore[DP001, DP017]";
  EXPECT_EQ(silenced(import_ + wrap_ + "\n"), import_ + wrap_ + "  " + all + "\n");
  EXPECT_EQ(silenced(import_ + wrap_), import_ + wrap_ + "  " + all);  // no line end
  EXPECT_EQ(silenced("import torch\r\n" + wrap_ + " \t\r\nx = 1\r\n"),
            "import torch\r\n" + wrap_ + "  " + all + "\r\nx = 1\r\n");
  EXPECT_EQ(silenced("import torch\r" + wrap_ + "\rx = 1\r"),
            "import torch\r" + wrap_ + "  " + all + "\rx = 1\r");
  EXPECT_EQ(silenced(import_ + wrap_ + "  # noqa: E501\n"),
            import_ + wrap_ + "  # noqa: E501  " + all + "\n");
  EXPECT_EQ(silenced(import_ + "model = torch.nn.DataParallel(\n    net,\n    [0, 1])\n"),
            import_ +
                "model = torch.nn.DataParallel(  # bench: ignore[DP001]\n    net,\n"
                "    [0, 1])  # bench: ignore[DP017]\n");
}

TEST_F(DiagnoseIgnores, AreMergedIntoACommentOfOurs) {
  EXPECT_EQ(silenced(import_ + wrap_ + "  # bench: ignore[DP017] two GPUs here\n"),
            import_ + wrap_ + "  # bench: ignore[DP017, DP001] two GPUs here\n");
  EXPECT_EQ(silenced(import_ + wrap_ + "  # bench: ignore[]\n"),
            import_ + wrap_ + "  # bench: ignore[DP001, DP017]\n");
  EXPECT_EQ(silenced(import_ + wrap_ + "  # bench: ignore[DP001\n"),
            import_ + wrap_ + "  # bench: ignore[DP001, DP017]\n");
}

TEST_F(DiagnoseIgnores, AreWrittenWhereACommentCanStand) {
  const std::string all = "  # bench: ignore[DP001, DP017]\n";
  EXPECT_EQ(silenced(import_ + wrap_ + " \\\n    .cuda() \\\n    .train()\n"),
            import_ + wrap_ + " \\\n    .cuda() \\\n    .train()" + all);
  EXPECT_EQ(silenced(import_ + wrap_ + "; s = '''a\n# b'''\n"),
            import_ + wrap_ + "; s = '''a\n# b'''" + all);
  EXPECT_EQ(silenced(import_ + wrap_ + "; s = f'''a\n{x}\n''' + \\\n    'b'\n"),
            import_ + wrap_ + "; s = f'''a\n{x}\n''' + \\\n    'b'" + all);
}

TEST_F(DiagnoseIgnores, AreWrittenIntoJobsAndConfigs) {
  EXPECT_EQ(silenced("export CUDA_VISIBLE_DEVICES=0,,1\ntorchrun train.py\n", "run.sh"),
            "export CUDA_VISIBLE_DEVICES=0,,1  # bench: ignore[LAU005]\ntorchrun train.py\n");
  const std::string job = "CUDA_VISIBLE_DEVICES=0,,1 torchrun \\\n  train.py\n";
  EXPECT_EQ(silenced(job, "job.sh"),
            "CUDA_VISIBLE_DEVICES=0,,1 torchrun \\\n  train.py  # bench: ignore[LAU005]\n");
  const std::string config = silenced("trainer:\n  gpus: 2\n", "config.yaml");
  EXPECT_TRUE(config.starts_with("trainer:\n  gpus: 2  # bench: ignore[LIT001")) << config;
}

TEST_F(DiagnoseIgnores, AreWrittenIntoScriptsThatTheirFirstLineTells) {
  const std::string job = "#!/bin/bash\nCUDA_VISIBLE_DEVICES=0,,1 torchrun \\\n  train.py";
  EXPECT_EQ(silenced(job + "\n", "run"), job + "  # bench: ignore[LAU005]\n");
  EXPECT_EQ(here_.bench_reading(job + "\n", {"diagnose", "-", "--add-ignores"}).out,
            job + "  # bench: ignore[LAU005]\n");
}

TEST_F(DiagnoseIgnores, AreNotWrittenIntoWhatAShellReads) {
  const std::string job = "CUDA_VISIBLE_DEVICES=0,,1 torchrun train.py";
  for (const std::string& text :
       {job + "\\\n\necho\n", job + " \\\n", job + " \\", "cat <<EOF | bash\n" + job + "\nEOF\n",
        "ssh host <<-'END'\n\t" + job + "\n\tEND\n"}) {
    here_.write("run.sh", text);
    const Answer answer = diagnose({"run.sh", "--add-ignores"});
    EXPECT_TRUE(says(answer.err, "LAU005 stays: no comment can stand there")) << text << answer.err;
    EXPECT_EQ(here_.read("run.sh"), text);
  }
  const std::string before =
      "cat <<< a; cat <<E\n'\nE\necho $((1 << 3)) ${#x} 'a\n# b' \\' # it's\n";
  EXPECT_EQ(silenced(before + job + "\n", "run.sh"), before + job + "  # bench: ignore[LAU005]\n");
}

TEST_F(DiagnoseIgnores, AreWrittenQuicklyIntoManyLines) {
  std::string text = import_;
  for (int i = 0; i < 2000; ++i) text += wrap_ + "\n";
  here_.write("train.py", text);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(
      says(diagnose({"train.py", "--add-ignores"}).err, "4000 ignores written; 0 findings"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(DiagnoseIgnores, AreShownAsADiff) {
  here_.write("train.py", import_ + wrap_ + "\n");
  const Answer answer = diagnose({"train.py", "--add-ignores", "--diff"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_TRUE(says(answer.out, "\n+" + wrap_ + "  # bench: ignore[DP001, DP017]\n")) << answer.out;
  EXPECT_EQ(answer.err, "2 ignores shown; 0 findings left\n");
  EXPECT_EQ(here_.read("train.py"), import_ + wrap_ + "\n");
}

TEST_F(DiagnoseIgnores, AreWrittenForWhatIsShownOnly) {
  here_.write("train.py", import_ + wrap_ + "\n");
  diagnose({"train.py", "--add-ignores", "--severity", "warning"});
  EXPECT_EQ(here_.read("train.py"), import_ + wrap_ + "  # bench: ignore[DP017]\n");
  // A baseline that knows the line goes on knowing it.
  here_.write("train.py", import_ + wrap_ + "\n");
  diagnose({"train.py", "--select", "DP001", "--format", "json", "--output-file", "b.json"});
  diagnose({"train.py", "--add-ignores", "--baseline", "b.json"});
  EXPECT_EQ(diagnose({"train.py", "--baseline", "b.json"}).out, "no pitfalls found in 1 file\n");
}

TEST_F(DiagnoseIgnores, AreNotWrittenWhereNoneCanStand) {
  here_.write("a.ipynb", R"({"cells": [{"cell_type": "code", "source": [")" + wrap_ + R"("]}]})");
  const Answer notebook = diagnose({"a.ipynb", "--add-ignores"});
  EXPECT_EQ(notebook.exit_code, 2);
  EXPECT_TRUE(says(notebook.err, "a.ipynb: --add-ignores writes no comments into notebooks"));
  std::filesystem::create_directory(here_.path() / "all");
  here_.write("all/a.json", "{\"trainer\": {\"gpus\": 2}}\n");
  here_.write("all/train.py", import_ + wrap_ + "\n");
  const Answer json = diagnose({"all", "--add-ignores"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_TRUE(says(json.err, "all/a.json:1: LIT001 stays: JSON has no comments")) << json.err;
  EXPECT_EQ(here_.read("all/a.json"), "{\"trainer\": {\"gpus\": 2}}\n");
  EXPECT_TRUE(says(here_.read("all/train.py"), "# bench: ignore[DP001, DP017]"));
  std::string wide = "\xFF\xFE";
  for (const char c : import_ + wrap_ + "\n") wide += {c, '\0'};
  here_.write("wide.py", wide);
  EXPECT_TRUE(says(diagnose({"wide.py", "--add-ignores"}).err, "where text is not UTF-8"));
  EXPECT_EQ(here_.read("wide.py"), wide);
}

TEST_F(DiagnoseIgnores, AreNotWrittenIntoFilesThatWereNotGiven) {
  here_.write("helper.py", import_ + wrap_ + "\n");
  here_.write("train.py", "import torch\nimport helper\nhelper.model(x).backward()\n");
  const Answer answer = diagnose({"train.py", "--add-ignores", "--select", "DP017"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_TRUE(says(answer.err, "1 finding in files that were not given")) << answer.err;
  EXPECT_EQ(here_.read("helper.py"), import_ + wrap_ + "\n");
  const Answer launch = diagnose({"train.py", "--add-ignores", "--select", "LAU005", "--launch",
                                  "CUDA_VISIBLE_DEVICES=0,,1 python train.py"});
  EXPECT_TRUE(says(launch.err, "LAU005 stays: no comment silences what --launch says"));
  EXPECT_FALSE(says(launch.err, "were not given")) << launch.err;
}

}  // namespace
}  // namespace bench::cli_test
