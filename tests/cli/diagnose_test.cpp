// bench diagnose and bench explain as a user meets them: flags, settings, paths that are wrong.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

const char* const kScript =
    "import torch\n"
    "import torchvision.models as models\n"
    "from torch.utils.data import DataLoader\n"
    "model = torch.nn.DataParallel(models.resnet50(), device_ids=[0, 1]).cuda()\n"
    "loader = DataLoader(data, batch_size=64)\n"
    "for x, y in loader:\n"
    "    model(x).sum().backward()\n";

void expect_refusal(const Workspace& here, std::vector<std::string> arguments,
                    const std::string& error) {
  arguments.insert(arguments.begin(), "diagnose");
  const Answer answer = here.bench(arguments);
  EXPECT_EQ(answer.exit_code, 2) << error;
  EXPECT_EQ(answer.out, "") << error;
  EXPECT_TRUE(answer.err.starts_with("bench: error: ")) << answer.err;
  EXPECT_NE(answer.err.find(error), std::string::npos) << answer.err;
}

TEST(Diagnose, NamesWhatIsWrongWithPathsAndFlags) {
  const Workspace here;
  here.write("train.py", kScript);
  std::filesystem::create_directory(here.path() / "empty");
  expect_refusal(here, {}, "PATH");
  expect_refusal(here, {"trian.py"}, "trian.py: no such file or directory");
  expect_refusal(here, {"empty"}, "empty: holds no script");
  expect_refusal(here, {"train.py", "--select", "missing-set-epock"},
                 "did you mean missing-set-epoch");
  expect_refusal(here, {"train.py", "--ignore", "DP999"}, "--ignore");
  expect_refusal(here, {"train.py", "--format", "jsn"}, "did you mean json");
  expect_refusal(here, {"train.py", "--severity", "warn"}, "did you mean warning");
  expect_refusal(here, {"train.py", "--confidence", "sertain"}, "did you mean certain");
  expect_refusal(here, {"train.py", "--launch", "make all"}, "--launch 'make all'");
  expect_refusal(here, {"train.py", "--gpus", "0"}, "--gpus");
  expect_refusal(here, {"train.py", "--gpus", "many"}, "--gpus");
  expect_refusal(here, {"train.py", "--colour"}, "--colour");
  expect_refusal(here, {"train.py", "--config", "none.toml"}, "none.toml: cannot be read");
}

TEST(Diagnose, NamesTheLineOfABadSetting) {
  const Workspace here;
  here.write("train.py", kScript);
  here.write("a.toml", "[diagnose]\ngpus = \"two\"\n");
  expect_refusal(here, {"train.py", "--config", "a.toml"}, "a.toml:2: gpus");
  here.write("b.toml", "[diagnose]\n\nselct = [\"DP\"]\n");
  expect_refusal(here, {"train.py", "--config", "b.toml"}, "b.toml:3: ");
  here.write("c.toml", "[diagnose]\nselect = \"DP\"\n");
  expect_refusal(here, {"train.py", "--config", "c.toml"}, "c.toml:2: ");
  here.write("d.toml", "[diagnose]\nselect = [\"DP\"\n");
  expect_refusal(here, {"train.py", "--config", "d.toml"}, "d.toml:");
  here.write("e.toml", "[diagnose]\nseverity = \"hint\"\n");
  expect_refusal(here, {"train.py", "--config", "e.toml"}, "e.toml:2: severity");
  here.write("g.toml", "[diagnose]\nconfidence = \"sure\"\n");
  expect_refusal(here, {"train.py", "--config", "g.toml"}, "g.toml:2: confidence: expected");
  here.write("f.toml", "[diagnose]\nselect = [\"DP999\"]\n");
  expect_refusal(here, {"train.py", "--config", "f.toml"}, "DP999");
}

TEST(Diagnose, ShowsWhatIsSureEnough) {
  const Workspace here;
  here.write("train.py",
             "import torch\nfrom torch.utils.data import DataLoader, DistributedSampler\n"
             "torch.distributed.init_process_group('nccl')\n"
             "model = torch.nn.parallel.DistributedDataParallel(Net().cuda())\n"
             "sampler = DistributedSampler(data)\n"
             "loader = DataLoader(data, sampler=sampler, shuffle=True)\n"
             "for epoch in range(9):\n    for x, y in loader:\n"
             "        f(model(x), y).backward()\n        optimizer.step()\n");
  const auto shown = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> all{"diagnose", "train.py", "--format", "json"};
    all.insert(all.end(), flags.begin(), flags.end());
    std::set<std::string> confidences;
    const auto document = nlohmann::json::parse(here.bench(all).out);
    for (const auto& finding : document["findings"])
      confidences.insert(finding["confidence"].get<std::string>());
    return confidences;
  };
  using Set = std::set<std::string>;
  EXPECT_EQ(shown({}), (Set{"certain", "check", "likely"}));
  EXPECT_EQ(shown({"--confidence", "check"}), (Set{"certain", "check", "likely"}));
  EXPECT_EQ(shown({"--confidence", "likely"}), (Set{"certain", "likely"}));
  EXPECT_EQ(shown({"--confidence", "certain"}), Set{"certain"});
  here.write("bench.toml", "[diagnose]\nconfidence = \"certain\"\n");
  EXPECT_EQ(shown({}), Set{"certain"});
  EXPECT_EQ(shown({"--confidence", "likely"}), (Set{"certain", "likely"}));  // the flag wins
}

TEST(Diagnose, KeepsItsFindingsWhereNothingCanBePredicted) {
  const Workspace here;
  here.write("train.py", kScript);
  const Answer answer =
      here.bench({"diagnose", "train.py", "--select", "DP001,DP017", "--cost"},
                 {{"BENCH_WORKER", "/no/such/worker"}, {"BENCH_RECORDINGS", "recordings"}});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_NE(answer.out.find("DP001"), std::string::npos);
  EXPECT_EQ(answer.out.find("predicted"), std::string::npos);
  EXPECT_NE(answer.err.find("--cost: no prediction: "), std::string::npos) << answer.err;
  EXPECT_FALSE(here.has("recordings"));
  const Answer small = here.bench({"diagnose", "train.py", "--machine", "1xv100-sxm2"});
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_NE(small.err.find("no prediction on 1xv100-sxm2"), std::string::npos) << small.err;
  const Answer unknown = here.bench({"diagnose", "train.py", "--machine", "4xv1000"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("unknown machine 'v1000'; did you mean v100"), std::string::npos)
      << unknown.err;
  here.write("empty.py", "import torch\n");  // nothing to predict is no reason to accept it
  EXPECT_EQ(here.bench({"diagnose", "empty.py", "--machine", "4xv1000"}).exit_code, 2);
}

// In a folder of a repository its settings count; those above the repository never do.
TEST(Diagnose, TakesTheSettingsOfTheRepository) {
  const Workspace here;
  std::filesystem::create_directories(here.path() / "repository/scripts");
  here.write("bench.toml", "[diagnose]\nnonsense = 1\n");
  here.write("repository/pyproject.toml", "[tool.bench.diagnose]\nselect = [\"LIT001\"]\n");
  here.write("repository/scripts/train.py", kScript);
  const auto run = [&] {
    return here.bench({"diagnose", "train.py"}, {{"PWD", "repository/scripts"}});
  };
  EXPECT_EQ(run().exit_code, 1);
  std::filesystem::create_directory(here.path() / "repository/.git");
  EXPECT_EQ(run().exit_code, 0);
}

// tools/train.py imports what lies beside tools where a mark says that it is one project.
TEST(Diagnose, FollowsImportsOfAScriptUpToTheRootOfItsProject) {
  const Workspace here;
  std::filesystem::create_directories(here.path() / "tools/inner");
  here.write("wrapping.py", kScript);
  here.write("tools/inner/train.py", "import torch\nimport wrapping\n");
  const auto found = [&](const std::string& script) {
    const Answer answer = here.bench({"diagnose", script, "--select", "DP001"});
    return answer.out.find("wrapping.py:4") != std::string::npos;
  };
  const std::string script = "tools/inner/train.py";
  EXPECT_FALSE(found(script));
  std::filesystem::create_directory(here.path() / ".git");
  EXPECT_TRUE(found(script));
  EXPECT_TRUE(found((here.path() / script).string()));
  here.write("tools/setup.py", "");  // a project within
  EXPECT_FALSE(found(script));
}

// An installed project's packages stand below src.
TEST(Diagnose, FollowsImportsIntoSrc) {
  const Workspace here;
  std::filesystem::create_directories(here.path() / "src/package");
  std::filesystem::create_directory(here.path() / "scripts");
  here.write("pyproject.toml", "");
  here.write("src/package/__init__.py", "");
  here.write("src/package/wrapping.py", kScript);
  here.write("scripts/train.py", "import torch\nfrom package import wrapping\n");
  const Answer answer = here.bench({"diagnose", "scripts/train.py", "--select", "DP001"});
  EXPECT_NE(answer.out.find("wrapping.py:4"), std::string::npos) << answer.out;
}

TEST(Diagnose, DoesNotFollowImportsThroughLinksOutOfTheTree) {
  const Workspace here;
  for (const char* folder : {"outside", "tree", "tree/inside"})
    std::filesystem::create_directory(here.path() / folder);
  here.write("outside/helper.py", kScript);
  here.write("tree/train.py", "import torch\nimport helper\nimport other\n");
  here.write("tree/inside/real.py", kScript);
  std::filesystem::create_symlink("../outside/helper.py", here.path() / "tree/helper.py");
  std::filesystem::create_symlink("inside/real.py", here.path() / "tree/other.py");
  std::filesystem::create_symlink(".", here.path() / "tree/loop");
  const Answer answer = here.bench({"diagnose", "tree", "--select", "DP017"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.out.find("helper.py"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("tree/inside/real.py:4"), std::string::npos) << answer.out;
  EXPECT_EQ(answer.out.find("loop"), std::string::npos) << answer.out;
}

TEST(Diagnose, ReadsWhatLiesBesideOneScript) {
  const Workspace here;
  std::filesystem::create_directory(here.path() / "tools");
  here.write("setup.py", "");
  here.write("tools/train.py",
             "import argparse\nimport torch.distributed as dist\n"
             "parser = argparse.ArgumentParser()\n"
             "parser.add_argument('--local_rank', type=int)\n"
             "dist.init_process_group('nccl')\nprint(parser.parse_args().local_rank)\n");
  const auto severity = [&] {
    const Answer answer = here.bench({"diagnose", "tools/train.py", "--select", "LAU002,LAU003"});
    EXPECT_EQ(answer.out.find("README"), std::string::npos) << answer.out;
    return answer.out;
  };
  EXPECT_NE(severity().find("warning LAU003"), std::string::npos) << severity();
  here.write("README.md", "```\npython -m torch.distributed.launch tools/train.py\n```\n");
  EXPECT_NE(severity().find("error LAU003"), std::string::npos) << severity();
  here.write("requirements.txt", "torch==1.9.0\n");
  EXPECT_NE(severity().find("info LAU003"), std::string::npos) << severity();
  here.write("README.md", "    torchrun --nproc-per-node 4 tools/train.py\n");
  EXPECT_NE(severity().find("error LAU002"), std::string::npos) << severity();
}

TEST(Diagnose, NeverCallsAnUncheckedFileClean) {
  const Workspace here;
  std::filesystem::create_directory(here.path() / "tree");
  // No processor reads this in ten microseconds; of a single line the parser asks no clock.
  std::string large = "import torch\n";
  for (int i = 0; i < 4'000; ++i) large += "x = f(a, b)[1] + {'k': (y, z)}\n";
  here.write("tree/large.py", large);
  here.write("tree/small.py", "import torch\n");
  const Answer named = here.bench({"diagnose", "tree/large.py", "--parse-limit", "0.00001"});
  EXPECT_EQ(named.exit_code, 2);
  EXPECT_TRUE(named.err.starts_with("bench: error: tree/large.py: not parsed within "))
      << named.err;
  EXPECT_EQ(named.out, "no pitfalls found in 0 files; 1 file could not be checked\n");
  const Answer met = here.bench({"diagnose", "tree", "--parse-limit", "0.00001"});
  EXPECT_EQ(met.exit_code, 0);
  EXPECT_EQ(met.out, "no pitfalls found in 1 file; 1 file could not be checked\n");
  EXPECT_NE(met.err.find("tree/large.py: not parsed"), std::string::npos) << met.err;
  const Answer json =
      here.bench({"diagnose", "tree", "--parse-limit", "0.00001", "--format", "sarif"});
  EXPECT_NE(json.out.find("\"executionSuccessful\": false"), std::string::npos);
  EXPECT_NE(json.out.find("toolExecutionNotifications"), std::string::npos);
  EXPECT_EQ(here.bench({"diagnose", "tree", "--parse-limit", "0"}).exit_code, 2);
}

TEST(Diagnose, SaysWhatPythonCannotRead) {
  const Workspace here;
  std::string wide = "\xFF\xFE";
  for (const char* c = kScript; *c != '\0'; ++c) wide += {*c, '\0'};
  here.write("train.py", wide);
  const Answer answer = here.bench({"diagnose", "train.py", "--select", "DP001"});
  EXPECT_EQ(answer.err, "bench: note: train.py: is UTF-16: Python cannot read it\n");
  EXPECT_NE(answer.out.find("train.py:4:9: "), std::string::npos) << answer.out;
}

TEST(Diagnose, SaysWhereAScriptDoesNotParseAndChecksTheRest) {
  const Workspace here;
  here.write("train.py", std::string(kScript) + "def broken(:\n    pass\n");
  const Answer answer = here.bench({"diagnose", "train.py", "--select", "DP001"});
  EXPECT_TRUE(answer.err.starts_with("bench: note: train.py: line ")) << answer.err;
  EXPECT_NE(answer.err.find("does not parse"), std::string::npos) << answer.err;
  EXPECT_NE(answer.out.find("train.py:4:9: "), std::string::npos) << answer.out;
}

TEST(Explain, KnowsIdsAndNamesAndTheNearest) {
  const Workspace here;
  const Answer by_id = here.bench({"explain", "DDP018"});
  EXPECT_EQ(by_id.exit_code, 0);
  EXPECT_TRUE(by_id.out.starts_with("# DDP018 missing-set-epoch\n")) << by_id.out;
  EXPECT_EQ(here.bench({"explain", "missing-set-epoch"}).out, by_id.out);
  const Answer wrong = here.bench({"explain", "missing-epoch"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("did you mean missing-set-epoch"), std::string::npos) << wrong.err;
  EXPECT_EQ(here.bench({"explain"}).exit_code, 2);
}

}  // namespace
}  // namespace bench::cli_test
