#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/core/temporary_directory.hpp"
#include "bench/plan/scenario_catalog.hpp"
#include "bench/plan/scenario_file.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace bench {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_scenario(text, "mine.toml", "mine");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ScenarioFile, EveryShippedScenarioIsCompleteAndSaysWhatItAnswers) {
  ASSERT_GE(scenario_catalog().size(), 6u);
  for (const ScenarioEntry& entry : scenario_catalog()) {
    const Settings settings = load_scenario(entry.name);
    EXPECT_NO_THROW(require_complete(settings)) << entry.name;
    EXPECT_FALSE(entry.description.empty()) << entry.name;
  }
}

TEST(ScenarioFile, ReadsEverySection) {
  const Settings s = parse_scenario(R"(
description = "d"
[sweep]
models = ["mlp"]
strategies = ["ddp"]
batches = [8, 16]
gpu_counts = [1, 4]
accumulation = 2
[ddp]
bucket_cap_mb = [1, 2.5]
find_unused_parameters = [true, false]
[training]
optimizer = "adam"
seed = 9
)",
                                    "mine.toml", "mine");
  EXPECT_EQ(s.scenario, "mine");
  EXPECT_EQ(s.strategies, std::vector<Strategy>{Strategy::distributed});
  EXPECT_EQ(s.batches, (std::vector<std::int64_t>{8, 16}));
  EXPECT_EQ(s.gpu_counts, (std::vector<int>{1, 4}));
  EXPECT_EQ(s.accumulations, std::vector<int>{2});
  EXPECT_EQ(s.bucket_caps_mb, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(s.find_unused_parameters, (std::vector<bool>{true, false}));
  EXPECT_EQ(s.optimizer.name, "adam");
  EXPECT_EQ(s.seed, 9u);
}

TEST(ScenarioFile, ErrorsNameLineColumnAndExpectation) {
  EXPECT_TRUE(
      error_of("[sweep]\nmodel = [\"mlp\"]\n")
          .starts_with("mine.toml:2:1: unknown key in [sweep] 'model'; did you mean models"));
  EXPECT_TRUE(error_of("[sweeps]\nx = 1\n")
                  .starts_with("mine.toml:1:2: unknown section 'sweeps'; did you mean sweep"));
  EXPECT_EQ(error_of("[sweep]\nbatches = [8, \"many\"]\n"),
            "mine.toml:2:15: sweep.batches: expected a whole number or a list of them");
  EXPECT_EQ(error_of("[sweep]\nbatches = []\n"),
            "mine.toml:2:11: sweep.batches: expected a whole number or a list of them");
  EXPECT_EQ(error_of("[training]\nsteps = [1, 2]\n"),
            "mine.toml:2:9: training.steps: expected a whole number");
  EXPECT_EQ(error_of("[training]\nsteps = 0\n"),
            "mine.toml:2:9: training.steps: expected 1 or more, found 0");
  EXPECT_EQ(error_of("[sweep]\nbatches = [8]\nbatches_per_gpu = [8]\n"),
            "mine.toml:3:19: sweep.batches_per_gpu: expected either this or sweep.batches");
}

TEST(ScenarioFile, MalformedTomlNamesTheLine) {
  EXPECT_EQ(error_of("[sweep]\nbatches = [8,\n[ddp]\n").substr(0, 12), "mine.toml:3:");
  EXPECT_NE(error_of("description = \"open\n").find("malformed TOML"), std::string::npos);
}

TEST(ScenarioFile, UnknownNamesListTheNearest) {
  try {
    load_scenario("dp_vs_dp");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean dp_vs_ddp"), std::string::npos);
  }
}

TEST(ScenarioFile, APathIsAFile) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("my sweep.toml");
  std::ofstream(path) << "[sweep]\nmodels = [\"mlp\"]\n";
  EXPECT_EQ(load_scenario(path).scenario, "my_sweep");
  EXPECT_THROW(load_scenario(path + ".missing.toml"), UsageError);
}

TEST(ScenarioFile, AnEmptyAxisIsNamed) {
  Settings settings = parse_scenario("[sweep]\nmodels = [\"mlp\"]\n", "mine.toml", "mine");
  try {
    require_complete(settings);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "scenario mine: expected sweep.strategies (or --strategy)");
  }
}

}  // namespace
}  // namespace bench
