#include "bench/core/error.hpp"
#include "bench/core/run_json.hpp"
#include "bench/core/strategy.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace bench {
namespace {

CaseResult done_case() {
  CaseResult result;
  result.work.scenario = "dp_vs_ddp";
  result.work.model.name = "resnet50";
  result.work.strategy = Strategy::distributed;
  result.work.gpus = {0, 1};
  result.work.batch = 64;
  result.simulated = true;
  result.error_band = 0.08;
  result.metrics = {{"items_per_second", 640.5}, {"step_ms_p50", 100.25}, {"verified", 1}};
  result.memory = {{0, 1000, {{"parameters", 600}, {"activations", 400}}}, {1, 900, {}}};
  result.phase_ms = {{"forward", 30.5}};
  result.breakdown = {{0, 60, 10, 1, 2, 27.25}};
  result.samples = {20, 99, 99.5, 100.25, 102, 110};
  result.verification = "equals single within 1e-6";
  result.facts = {{"torch", "2.11.0"}};
  result.real_seconds = 0.25;
  result.trace_file = "traces/one.json.gz";
  return result;
}

RunResult one_of_each() {
  RunResult run;
  run.context.scenario = "dp_vs_ddp";
  run.context.machine = "2xv100-sxm2";
  run.context.simulated = true;
  run.context.gpus = {0, 1};
  run.context.seed = 18446744073709551615ULL;
  run.context.versions = {{"torch", "2.11.0"}};
  run.context.notes = {"verified on a reduced twin"};
  run.context.extra = {{"host_name", "here"}};
  run.cases.push_back(done_case());
  for (auto status : {CaseStatus::skipped, CaseStatus::wrong, CaseStatus::failed}) {
    CaseResult result;
    result.work.batch = 32;
    result.status = status;
    result.out_of_memory = status == CaseStatus::skipped;
    result.message = std::string("because it was ") + case_status_name(status);
    run.cases.push_back(result);
  }
  return run;
}

TEST(RunJson, ReadsBackWhatItWrote) {
  const std::string text = run_to_json(one_of_each());
  EXPECT_EQ(run_to_json(run_from_json(text, "memory")), text);
  const RunResult run = run_from_json(text, "memory");
  ASSERT_EQ(run.cases.size(), 4u);
  EXPECT_EQ(run.cases[0].metrics, done_case().metrics);
  EXPECT_EQ(run.cases[0].memory[0].by_category.at("parameters"), 600u);
  EXPECT_EQ(run.cases[0].name(), "dp_vs_ddp/model:resnet50/strategy:distributed/gpus:2/batch:64");
  EXPECT_EQ(run.cases[0].error_band, 0.08);
  EXPECT_TRUE(run.cases[1].out_of_memory);
  EXPECT_EQ(run.cases[3].status, CaseStatus::failed);
  EXPECT_EQ(run.context.extra.at("host_name"), "here");
  EXPECT_EQ(run.context.seed, 18446744073709551615ULL);
}

TEST(RunJson, IsGoogleBenchmarksLayout) {
  const auto j = nlohmann::json::parse(run_to_json(one_of_each()));
  const auto& done = j["benchmarks"][0];
  EXPECT_EQ(done["real_time"], 100.25);
  EXPECT_EQ(done["time_unit"], "ms");
  EXPECT_EQ(done["run_type"], "iteration");
  EXPECT_EQ(done["items_per_second"], 640.5);
  const auto& skipped = j["benchmarks"][1];
  EXPECT_EQ(skipped["skipped"], true);
  EXPECT_EQ(skipped["skip_message"], "because it was skipped");
  EXPECT_FALSE(skipped.contains("real_time")) << "a skipped case has no time";
  EXPECT_EQ(j["benchmarks"][2]["verified"], 0);
}

TEST(RunJson, WithholdsTheTimesOfAWrongCase) {
  RunResult run;
  run.cases.push_back(done_case());
  run.cases[0].status = CaseStatus::wrong;
  const auto j = nlohmann::json::parse(run_to_json(run));
  EXPECT_FALSE(j["benchmarks"][0].contains("real_time"));
  EXPECT_FALSE(j["benchmarks"][0].contains("items_per_second"));
}

TEST(RunJson, MissingMetricIsNotZero) {
  EXPECT_TRUE(std::isnan(CaseResult{}.metric("step_ms_p50")));
}

TEST(RunJson, RefusesWhatItCannotRead) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      run_from_json(text, "a/results.json");
    } catch (const UsageError& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_NE(message("{").find("a/results.json: not a results.json"), std::string::npos);
  EXPECT_NE(message(R"({"context":{"schema_version":99},"benchmarks":[]})").find("found 99"),
            std::string::npos);
  EXPECT_NE(message(R"({"context":{"schema_version":1}})").find("benchmarks"), std::string::npos);
  EXPECT_THROW(load_run("/nonexistent/run"), UsageError);
}

}  // namespace
}  // namespace bench
