// What surrounds the rules: fixes that cure what they fix, silencing, formats, notebooks, hostile
// input, and the Lightning device readings.
#include "bench/core/error.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/fix.hpp"
#include "diagnose/output/index.hpp"
#include "diagnose/output/render.hpp"
#include "diagnose/syntax/tree.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

namespace bench::diagnose {
namespace {

using Texts = std::map<std::string, std::string>;

const char* const kUnsharded =
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "from torch.utils.data import DataLoader\n"
    "model = DDP(net)\n"
    "loader = DataLoader(data, shuffle=True)%s\n"
    "for x in loader:\n"
    "    model(x).backward()\n";

std::vector<Finding> findings_of(const std::string& text, const std::string& rule = "DDP017") {
  DiagnoseOptions options;
  options.selection.select = {rule};
  return diagnose_texts({{"train.py", text}}, "train.py", options);
}

std::string unsharded(const std::string& comment) {
  std::string text = kUnsharded;
  return text.replace(text.find("%s"), 2, comment);
}

TEST(Fixes, CureTheirOwnRuleInEveryCaseOfThePages) {
  std::size_t fixed = 0;
  for (const pitfalls::Rule& rule : pitfalls::all_rules())
    for (const pitfalls::PageCase& each : pitfalls::cases_of(pitfalls::page_of(rule))) {
      DiagnoseOptions options;
      options.selection.select.emplace_back(rule.id);
      if (!each.launch.empty()) options.launch = each.launch;
      Texts texts(each.files.begin(), each.files.end());
      std::size_t before = 0;
      for (int round = 0; round < 4; ++round) {
        std::size_t applied = 0;
        const auto found = diagnose_texts(texts, each.script, options);
        const auto changed = apply_fixes(found, texts, applied);
        if (round == 0) before = applied;
        if (applied == 0) break;
        for (const auto& [file, text] : changed) texts[file] = text;
      }
      if (before == 0) continue;
      ++fixed;
      EXPECT_FALSE(SyntaxTree::parse(texts.at(each.script)).has_errors())
          << rule.id << ": " << each.title << "\n"
          << texts.at(each.script);
      for (const Finding& left : diagnose_texts(texts, each.script, options))
        EXPECT_FALSE(left.fix) << rule.id << ": " << each.title << "\n" << texts.at(each.script);
    }
  EXPECT_GE(fixed, 20U);
}

TEST(Fixes, NameTheSamplerByItsLoaderWhereItsNameIsThatOfAnother) {
  const std::string script =
      "import torch.distributed as dist\n"
      "from torch.utils.data import DataLoader, DistributedSampler\n"
      "dist.init_process_group('nccl')\n"
      "sampler = DistributedSampler(train)\n"
      "loader = DataLoader(train, sampler=sampler)\n"
      "sampler = DistributedSampler(test, shuffle=False)\n"
      "checks = DataLoader(test, sampler=sampler)\n"
      "for epoch in range(90):\n"
      "    for x, y in loader:\n"
      "        criterion(model(x), y).backward()\n"
      "        optimizer.step()\n";
  std::size_t applied = 0;
  const auto fixed = apply_fixes(findings_of(script, "DDP018"), {{"train.py", script}}, applied);
  ASSERT_EQ(applied, 1U);
  EXPECT_NE(fixed.at("train.py").find("    loader.sampler.set_epoch(epoch)\n"), std::string::npos);
}

TEST(Fixes, OfSavesHoldInRunsWithoutAGroupToo) {
  const std::string head = "import torch\nimport torch.distributed as dist\n";
  const std::string tail =
      "model = torch.nn.parallel.DistributedDataParallel(net)\n"
      "torch.save(model.module.state_dict(), 'model.pt')\n";
  const auto fixed = [](const std::string& script) {
    std::size_t applied = 0;
    return apply_fixes(findings_of(script, "DDP039"), {{"train.py", script}}, applied)
        .at("train.py");
  };
  EXPECT_NE(fixed(head + "dist.init_process_group('nccl')\n" + tail)
                .find("\nif dist.get_rank() == 0:\n    torch.save("),
            std::string::npos);
  EXPECT_NE(fixed(head + "if args.several:\n    dist.init_process_group('nccl')\n" + tail)
                .find("\nif not dist.is_initialized() or dist.get_rank() == 0:\n    torch.save("),
            std::string::npos);
}

TEST(Fixes, BringNoTrainerHalfwayUpToDate) {
  const auto fixes = [](const std::string& arguments) {
    DiagnoseOptions options;
    const auto found = diagnose_texts(
        {{"train.py", "import lightning as L\ntrainer = L.Trainer(" + arguments + ")\n"}},
        "train.py", options);
    return std::count_if(found.begin(), found.end(),
                         [](const Finding& finding) { return finding.fix.has_value(); });
  };
  EXPECT_EQ(fixes("gpus=2, precision=16"), 2);
  EXPECT_EQ(fixes("gpus=options.gpus, precision=16"), 0);
  EXPECT_EQ(fixes("gpus=2, precision=16, weights_summary='top'"), 0);
}

TEST(Fixes, OfTheLocalRankKeepTheDefaultOfPlainRuns) {
  const auto fixed = [](const std::string& option) {
    const std::string script =
        "# torchrun --nproc_per_node=4 train.py\n"
        "import argparse\n"
        "import torch.distributed as dist\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--local_rank'" +
        option +
        ")\n"
        "args = parser.parse_args()\n"
        "dist.init_process_group('nccl')\n"
        "torch.cuda.set_device(args.local_rank)\n";
    std::size_t applied = 0;
    return apply_fixes(findings_of(script, "LAU002"), {{"train.py", script}}, applied)
        .at("train.py");
  };
  const std::string none = "int(os.environ['LOCAL_RANK']) if 'LOCAL_RANK' in os.environ else None";
  EXPECT_NE(fixed(", type=int").find(", type=int, default=" + none + ")"), std::string::npos);
  EXPECT_NE(fixed(", default=None").find("default=" + none + ")"), std::string::npos);
  EXPECT_NE(fixed(", default=-1").find("default=int(os.environ.get('LOCAL_RANK', -1))"),
            std::string::npos);
  EXPECT_NE(fixed(", type=int").find("import os\nimport argparse"), std::string::npos);
}

TEST(Fixes, AreNotMadeTwiceAtOnePlace) {
  Finding finding;
  finding.fix.emplace();
  finding.fix->edits.push_back({"train.py", 0, 0, "sampler.set_epoch(epoch)\n"});
  std::size_t applied = 0;
  const auto once = apply_fixes({finding}, {{"train.py", "train()\n"}}, applied);
  ASSERT_EQ(applied, 1U);
  apply_fixes({finding}, once, applied);
  EXPECT_EQ(applied, 1U);
}

TEST(Fixes, KeepTheLineEndsOfTheFile) {
  const Edit edit{"train.py", 9, 9, "first()\nsecond()\n"};
  EXPECT_EQ(apply_edits("train()\r\ntest()\r\n", {edit}),
            "train()\r\nfirst()\r\nsecond()\r\ntest()\r\n");
  const Edit plain{"train.py", 8, 8, "first()\n"};
  EXPECT_EQ(apply_edits("train()\ntest()\n", {plain}), "train()\nfirst()\ntest()\n");
}

TEST(Silencing, NamesRulesOnTheLine) {
  EXPECT_EQ(findings_of(unsharded("")).size(), 1U);
  EXPECT_TRUE(findings_of(unsharded("  # bench: ignore[DDP017] sharded by files")).empty());
  EXPECT_TRUE(findings_of(unsharded("  # bench: ignore[data-not-sharded]")).empty());
  EXPECT_TRUE(findings_of(unsharded("  # bench: ignore")).empty());
  EXPECT_EQ(findings_of(unsharded("  # bench: ignore[DDP018]")).size(), 1U);
}

TEST(Selection, RefusesUnknownNames) {
  Selection selection;
  selection.select = {"missing-set-epock"};
  EXPECT_THROW(check_selection(selection), UsageError);
  selection.select = {"DDP", "throughput", "missing-set-epoch", "LIT001"};
  EXPECT_NO_THROW(check_selection(selection));
}

TEST(Output, JsonAndSarifHoldTheFinding) {
  const auto found = findings_of(unsharded(""));
  const auto json = nlohmann::json::parse(render_json(found, {1, false}));
  EXPECT_EQ(json["findings"][0]["rule"], "DDP017");
  EXPECT_EQ(json["findings"][0]["line"], 4);
  const auto sarif = nlohmann::json::parse(render_sarif(found, {1, false}));
  EXPECT_EQ(sarif["version"], "2.1.0");
  const auto& run = sarif["runs"][0];
  EXPECT_EQ(run["results"][0]["ruleId"], "DDP017");
  EXPECT_EQ(run["results"][0]["message"]["text"], found[0].message + ". " + found[0].help);
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["id"], "DDP017");
  EXPECT_EQ(run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"], 4);
}

TEST(Output, CarriesNoTerminalEscapes) {
  auto found = findings_of(unsharded("  # \x1b[31mred\x07 \xc2\x9b"));
  ASSERT_EQ(found.size(), 1U);
  found[0].message += "\x1b]0;title\x07";
  for (auto* render : {&render_text, &render_markdown, &render_github}) {
    const std::string text = (*render)(found, {1, false});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x07'), std::string::npos);
  }
}

// A file name and text that mean something to every format.
std::vector<Finding> hostile() {
  auto found = findings_of(unsharded(""));
  found[0].file = "a`b|c%d:e,f\n::error::g \x1b[31m.py";
  found[0].message = "a|b `c` <img src=x> *d* [e](f)\n::set-output name=x::y %0A";
  found[0].help.clear();
  found[0].evidence.clear();
  return found;
}

TEST(Output, EscapesHostileNamesForGithub) {
  EXPECT_EQ(render_github(hostile(), {1, false}),
            "::error file=a`b|c%25d%3Ae%2Cf?%3A%3Aerror%3A%3Ag ?[31m.py,line=4,col=10,endLine=4,"
            "title=DDP017 data-not-sharded::a|b `c` <img src=x> *d* [e](f)?::set-output name=x::y "
            "%250A\n");
}

TEST(Output, EscapesHostileNamesForMarkdown) {
  const std::string text = render_markdown(hostile(), {1, false});
  EXPECT_EQ(text.substr(text.find("\n| ``")),
            "\n| `` a`b\\|c%d:e,f?::error::g ?[31m.py:4 `` | error | DDP017 data-not-sharded | "
            "a\\|b \\`c\\` \\<img src=x\\> \\*d\\* \\[e\\](f)?::set-output name=x::y %0A |  |\n");
}

TEST(Output, SarifHoldsWhatCodeScanningAsksFor) {
  auto found = hostile();
  found.push_back(found[0]);
  found[1].file = "./src/train.py";
  found.push_back(found[0]);
  found[2].file = "/tmp/a b.py";
  const auto run = nlohmann::json::parse(render_sarif(found, {1, false}))["runs"][0];
  EXPECT_EQ(run["columnKind"], "utf16CodeUnits");
  const auto& driver = run["tool"]["driver"];
  EXPECT_EQ(driver["rules"].size(), 1U);
  for (const char* key : {"id", "name", "shortDescription", "fullDescription", "help", "helpUri"})
    EXPECT_TRUE(driver["rules"][0].contains(key)) << key;
  EXPECT_FALSE(driver["rules"][0]["help"]["markdown"].get<std::string>().empty());
  const char* const uris[] = {"a%60b%7Cc%25d%3Ae%2Cf%0A%3A%3Aerror%3A%3Ag%20%1B%5B31m.py",
                              "src/train.py", "file:///tmp/a%20b.py"};
  ASSERT_EQ(run["results"].size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& result = run["results"][i];
    EXPECT_EQ(result["ruleIndex"], 0);
    EXPECT_EQ(result["level"], "error");
    EXPECT_FALSE(result["message"]["text"].get<std::string>().empty());
    EXPECT_TRUE(result["partialFingerprints"].contains("primaryLocationLineHash"));
    const auto& place = result["locations"][0]["physicalLocation"];
    EXPECT_EQ(place["artifactLocation"]["uri"], uris[i]);
    EXPECT_EQ(place["artifactLocation"].value("uriBaseId", ""), i < 2 ? "%SRCROOT%" : "");
    EXPECT_GE(place["region"]["startColumn"].get<int>(), 1);
    EXPECT_GT(place["region"]["endColumn"].get<int>(), place["region"]["startColumn"].get<int>());
  }
}

TEST(Input, SurvivesWhatIsNotAScript) {
  std::string nested = "import torch\nx = ";
  for (int i = 0; i < 20000; ++i) nested += "(";
  std::string chain = "import torch\na0 = torch.zeros(1)\n";
  for (int i = 1; i < 3000; ++i)
    chain += "a" + std::to_string(i) + " = a" + std::to_string(i - 1) + ".f()\ndef f(): pass\n";
  for (const std::string& text :
       {std::string(), std::string("import torch\n\0\xff\xfe", 16), nested, chain,
        std::string("import torch\nprint 'python 2'\nx = torch.save(y)\n"),
        std::string("import torch\ndef f(:\n  DDP(\n"),
        std::string("import torch\nx = x.f(x)\ny = z\nz = y\nz.backward()\n")}) {
    DiagnoseOptions options;
    EXPECT_NO_THROW(diagnose_texts({{"train.py", text}}, "train.py", options));
  }
  for (const char* name : {"c.yaml", "c.json", "c.toml", "n.ipynb", "run.sh"})
    EXPECT_NO_THROW(diagnose_texts({{name, "{[\x01: &a *a torch python \""}}, name, {}));
}

TEST(Input, NumbersTheLinesOfEveryYamlDocument) {
  const std::string text = "a: 1\n---\ntrainer:\n  gpus: 2\n";
  DiagnoseOptions options;
  options.selection.select = {"LIT001"};
  const auto found = diagnose_texts({{"c.yaml", text}}, "c.yaml", options);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].line, 4U);
}

TEST(Input, ReadsNotebooksBySourceLine) {
  const std::string notebook =
      "{\n \"cells\": [\n  {\"cell_type\": \"code\", \"source\": [\n    \"%matplotlib "
      "inline\\n\",\n"
      "    \"import torch.nn as nn\\n\",\n    \"model = nn.DataParallel(net)\"\n  ]}\n ]\n}\n";
  DiagnoseOptions options;
  options.selection.select = {"DP001"};
  const auto found = diagnose_texts({{"n.ipynb", notebook}}, "n.ipynb", options);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].line, 6U);
}

TEST(Input, NamesTheCellOfANotebook) {
  const std::string notebook =
      "{\"cells\": [{\"cell_type\": \"markdown\", \"source\": \"\"},\n{\"cell_type\": \"code\", "
      "\"source\": [\"!pip install x \\\\\\n\",\n\"  y\\n\",\n\"import torch.multiprocessing as "
      "mp\\n\",\n"
      "\"def work(rank): pass\\n\",\n\"mp.spawn(work, nprocs=2)\"]}]}";
  DiagnoseOptions options;
  options.selection.select = {"LAU008"};
  const auto found = diagnose_texts({{"n.ipynb", notebook}}, "n.ipynb", options);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].message.find("cannot import work"), std::string::npos);
  EXPECT_EQ(found[0].line, 6U);
  ASSERT_FALSE(found[0].evidence.empty());
  EXPECT_EQ(found[0].evidence[0].second, "cell 2, line 5");
}

TEST(RulesIndex, IsFresh) {
  std::ifstream file(std::string(BENCH_DOCS) + "/rules.md");
  std::stringstream stored;
  stored << file.rdbuf();
  EXPECT_EQ(stored.str(), rules_index()) << "write it anew: bench explain --index > docs/rules.md";
}

TEST(Launches, BelongToTheScriptBesideThem) {
  const std::string script =
      "import torch.multiprocessing as mp\n"
      "def worker(rank):\n"
      "    pass\n"
      "if __name__ == '__main__':\n"
      "    mp.spawn(worker, nprocs=4)\n";
  const std::string launch = "torchrun --nproc-per-node 4 main.py\n";
  DiagnoseOptions options;
  options.selection.select = {"LAU008"};
  const auto count = [&](const Texts& texts, const std::string& path) {
    return diagnose_texts(texts, path, options).size();
  };
  const Texts beside{{"a/run.sh", launch}, {"a/main.py", script}, {"b/main.py", script}};
  EXPECT_EQ(count(beside, "a/main.py"), 1U);
  EXPECT_EQ(count(beside, "b/main.py"), 0U);
  const Texts moved{{"run.sh", "cd b\n" + launch}, {"main.py", script}, {"b/main.py", script}};
  EXPECT_EQ(count(moved, "main.py"), 0U);
  EXPECT_EQ(count(moved, "b/main.py"), 1U);
  // Started from the folder above, or below it.
  EXPECT_EQ(count({{"scripts/run.sh", launch}, {"main.py", script}}, "main.py"), 1U);
  EXPECT_EQ(count({{"run.sh", launch}, {"src/main.py", script}}, "src/main.py"), 1U);
  // Beside each other: only where no other script has the name.
  EXPECT_EQ(count({{"a/run.sh", launch}, {"b/main.py", script}}, "b/main.py"), 1U);
  EXPECT_EQ(
      count({{"a/run.sh", launch}, {"b/main.py", script}, {"c/main.py", script}}, "b/main.py"), 0U);
}

TEST(Launches, MayLackTheirCommand) {
  const Texts texts{{"job.sh", "srun --overlap\nsrun\npython\nnohup\ntorchrun\n"},
                    {"train.py", "import torch\n"}};
  EXPECT_TRUE(diagnose_texts(texts, "train.py", {}).empty());
  EXPECT_TRUE(diagnose_texts(texts, "job.sh", {}).empty());
}

}  // namespace
}  // namespace bench::diagnose
