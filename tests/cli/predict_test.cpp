// bench predict with the mock worker's recordings: figures, skips, sweeps, and what is refused.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

using Json = nlohmann::json;

std::vector<std::string> predict(std::vector<std::string> more) {
  std::vector<std::string> arguments{"predict", "--worker", "mock", "--recordings", "recordings"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Json predictions(const Workspace& here, std::vector<std::string> more) {
  more.insert(more.end(), {"--format", "json"});
  const Answer answer = here.bench(predict(std::move(more)));
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  const Json json = Json::parse(answer.out);
  EXPECT_EQ(json.at("simulated"), true);
  return json.at("predictions");
}

TEST(Predict, KeepsTheLogOfAWorkerThatDied) {
  const Workspace here;
  const auto worker = here.write("dying", "#!/bin/sh\necho 'no more memory' >&2\nkill -9 $$\n");
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  const Answer answer =
      here.bench({"predict", "--worker", worker.string(), "--recordings", "recordings", "--model",
                  "mlp", "--machine", "dgx-a100", "--strategy", "ddp"});
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_NE(answer.err.find("no more memory"), std::string::npos) << answer.err;
  const std::size_t at = answer.err.find("; log: ");
  ASSERT_NE(at, std::string::npos) << answer.err;
  const std::string log = answer.err.substr(at + 7, answer.err.find('\n', at) - at - 7);
  EXPECT_TRUE(here.has(log)) << log;
}

TEST(Predict, GivesFiguresForAMachineOfManyNodes) {
  const Workspace here;
  const Json all = predictions(here, {"--model", "resnet50", "--machine", "16xdgx-a100"});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].at("strategy"), "data_parallel");
  EXPECT_EQ(all[0].at("gpus"), 8) << "DataParallel stays on one node";
  EXPECT_EQ(all[1].at("gpus"), 128);
  for (const Json& p : all) {
    const double step = p.at("step_ms");
    EXPECT_GT(step, 0);
    EXPECT_NEAR(p.at("items_per_second"), p.at("batch").get<double>() * 1e3 / step, 1e-6);
    EXPECT_NEAR(p.at("compute_ms").get<double>() + p.at("exposed_communication_ms").get<double>() +
                    p.at("exposed_copy_ms").get<double>() + p.at("host_ms").get<double>() +
                    p.at("idle_ms").get<double>(),
                step, 1e-3);
    EXPECT_GT(p.at("error_band").at("relative"), 0);
    EXPECT_TRUE(p.at("fits"));
  }
}

TEST(Predict, TextIsLabelledAndSaysWhatItWasMadeFrom) {
  const Workspace here;
  const Answer answer =
      here.bench(predict({"--model", "mlp", "--machine", "dgx-1-v100", "--gpu-counts", "powers"}));
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.out.find("SIMULATED"), 0U);
  for (const char* part : {"Where the step goes", "Made from", "specification", "may be off"}) {
    EXPECT_NE(answer.out.find(part), std::string::npos) << part;
  }
}

TEST(Predict, WritesOneOfflinePageWithAChart) {
  const Workspace here;
  const Answer answer = here.bench(predict({"--model", "resnet50", "--machine", "dgx-a100",
                                            "--bucket-cap-mb", "1,25", "--out", "sweep.html"}));
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  const std::string page = here.read("sweep.html");
  EXPECT_NE(page.find("SIMULATED"), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("bucket_mb:25"), std::string::npos);
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
}

TEST(Predict, UnequalRanksSayHowLongTheFastOnesWait) {
  const Workspace here;
  const std::vector<std::string> asked{"--model",      "resnet50", "--machine",     "2xdgx-1-v100",
                                       "--strategy",   "ddp",      "--rank-speeds", "1x8,0.5x8",
                                       "--gpu-counts", "8,16"};
  const Json all = predictions(here, asked);
  EXPECT_EQ(all[0].at("skip_message"), "--rank-speeds lists 16 ranks, this has 8");
  const Json classes = all[1].at("speed_classes");
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes[0].at("ranks"), 8);
  EXPECT_EQ(classes[0].at("waits_ms"), 0);
  EXPECT_NEAR(classes[1].at("waits_ms"), all[1].at("compute_ms").get<double>() / 2, 1e-6);
  const Answer bad =
      here.bench(predict({"--model", "mlp", "--machine", "dgx-1-v100", "--rank-speeds", "1x0.5"}));
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.err.find("--rank-speeds"), std::string::npos);
}

TEST(Predict, NodesOfSeveralKindsSayWhoWaitsAndWhereItDoesNotFit) {
  const Workspace here;
  here.write("mixed.toml", "[[group]]\nnode = \"dgx-a100\"\n[[group]]\nnode = \"dgx-1-v100\"\n");
  std::vector<std::string> asked{"--model",      "resnet50", "--strategy", "ddp",
                                 "--gpu-counts", "16",       "--machine"};
  auto on = [&](const char* machine, const std::string& batch) {
    std::vector<std::string> all = asked;
    all.insert(all.end(), {machine, "--batch-per-gpu", batch, "--max-batch"});
    return predictions(here, all).at(0);
  };
  const std::int64_t most = on("2xdgx-1-v100", "8").at("max_batch_per_gpu");
  const Json mixed = on("mixed.toml", std::to_string(most + most / 4));
  EXPECT_EQ(mixed.at("max_batch_per_gpu"), most);
  EXPECT_FALSE(mixed.at("fits"));
  EXPECT_TRUE(mixed.at("memory")[0].at("fits")) << "the A100's";
  EXPECT_FALSE(mixed.at("memory")[1].at("fits"));
  EXPECT_TRUE(mixed.at("memory")[1].at("node").get<std::string>().starts_with("DGX-1"));
  const Json classes = mixed.at("speed_classes");
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_GT(classes[0].at("waits_ms"), 0);
  EXPECT_EQ(classes[1].at("waits_ms"), 0);
  asked.insert(asked.end(), {"mixed.toml", "--rank-speeds", "0.5x8"});
  const Answer bad = here.bench(predict(asked));
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.err.find("--rank-speeds: mixed.toml"), std::string::npos) << bad.err;
}

TEST(Predict, AMeasuredSingleStepIsReproduced) {
  const Workspace here;
  const Json all = predictions(here, {"--model", "resnet50", "--machine", "dgx-1-v100",
                                      "--strategy", "single,ddp", "--measured-single", "97"});
  EXPECT_NEAR(all[0].at("step_ms"), 97, 0.01);
  EXPECT_NEAR(all[1].at("single_ms"), 97, 0.01);
}

TEST(Predict, TheMeasuredStepIsOfTheFirstPrecision) {
  const Workspace here;
  const Json all =
      predictions(here, {"--model", "resnet50", "--machine", "dgx-1-v100", "--strategy", "single",
                         "--measured-single", "97", "--precision", "float16,float32"});
  EXPECT_NEAR(all[0].at("step_ms"), 97, 0.01);
  EXPECT_GT(all[1].at("step_ms"), 97);
}

TEST(Predict, NamesTheCategoryThatDoesNotFit) {
  const Workspace here;
  const Json all =
      predictions(here, {"--model", "resnet50", "--machine", "4xv100-sxm2", "--strategy", "ddp",
                         "--batch-per-gpu", "100000", "--max-batch"});
  EXPECT_FALSE(all[0].at("fits"));
  EXPECT_EQ(all[0].at("memory")[0].at("first_failure"), "activations");
  const std::int64_t most = all[0].at("max_batch_per_gpu");
  const std::string fits = std::to_string(most);
  const std::string too_large = std::to_string(most + 1);
  const Json both =
      predictions(here, {"--model", "resnet50", "--machine", "4xv100-sxm2", "--strategy", "ddp",
                         "--batch-per-gpu", fits + "," + too_large});
  EXPECT_TRUE(both[0].at("fits"));
  EXPECT_FALSE(both[1].at("fits"));
}

TEST(Predict, MemoryOverTimeReachesThePeak) {
  const Workspace here;
  const Json all = predictions(
      here, {"--model", "resnet50", "--machine", "4xv100-sxm2", "--strategy", "dp,ddp"});
  for (const Json& one : all) {
    const Json& times = one.at("memory_over_time").at("time_ms");
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      std::uint64_t bytes = 0;
      for (const auto& [category, values] : one["memory_over_time"]["by_category"].items()) {
        bytes += values.at(i).get<std::uint64_t>();
      }
      most = std::max(most, bytes);
      if (i > 0) EXPECT_GE(times[i], times[i - 1]);
    }
    EXPECT_LE(times.back(), one.at("step_ms"));
    const Json& peak = one.at("memory")[0];
    EXPECT_EQ(most + peak.at("by_category").value("cuBLAS workspaces", 0ULL),
              peak.at("peak_bytes"));
  }
}

TEST(Predict, ThePageDrawsMemoryOverTime) {
  const Workspace here;
  std::vector<std::string> asked{"--model",    "resnet50", "--machine", "4xv100-sxm2",
                                 "--strategy", "dp,ddp",   "--format",  "html"};
  const Answer page = here.bench(predict(asked));
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_NE(page.out.find("<h3>resnet50 DDP 4 GPUs"), std::string::npos);
  EXPECT_NE(page.out.find("class=\"m-activations\""), std::string::npos);
  asked.back() = "text";
  EXPECT_NE(here.bench(predict(asked)).out.find("GPU 0 while the step is issued: "),
            std::string::npos);
}

TEST(Predict, WhatCannotRunIsSaidAndTheRestAnswered) {
  const Workspace here;
  const Json all = predictions(here, {"--model", "resnet50", "--machine", "2xdgx-a100",
                                      "--gpu-counts", "4,16", "--strategy", "dp,ddp"});
  ASSERT_EQ(all.size(), 4U);
  EXPECT_TRUE(all[1].at("skipped"));
  EXPECT_NE(all[1].at("skip_message").get<std::string>().find("one process"), std::string::npos);
  EXPECT_GT(all[3].at("step_ms"), 0);
}

TEST(Predict, StragglersAndJitterOnlyEverDelay) {
  const Workspace here;
  const std::vector<std::string> base{"--model",     "resnet50",   "--machine",
                                      "16xdgx-a100", "--strategy", "ddp"};
  auto step = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return predictions(here, more)[0].at("step_ms").get<double>();
  };
  const double quiet = step({"--jitter", "0"});
  EXPECT_GT(step({"--jitter", "0", "--stragglers", "1.5"}), 1.2 * quiet);
  EXPECT_GT(step({"--jitter", "0.05"}), quiet);
  EXPECT_EQ(step({"--draw-jitter", "--seed", "4"}), step({"--draw-jitter", "--seed", "4"}));
}

TEST(Predict, RefusesWhatItDoesNotUnderstand) {
  const Workspace here;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--machine", "dgx-a100"}, "--model"},
      {{"--model", "resnet50"}, "--machine"},
      {{"--model", "resnet50", "--machine", "dgx-a101"}, "dgx-a100"},
      {{"--model", "resnet5", "--machine", "dgx-a100"}, "resnet50"},
      {{"--model", "mlp", "--machine", "dgx-a100", "--precision", "fp8"}, "bfloat16"},
      {{"--model", "mlp", "--machine", "dgx-a100", "--hook", "powersgd"}, "fp16_compress"},
      {{"--model", "mlp", "--machine", "dgx-a100", "--stragglers", "0.5"}, "--stragglers"},
      {{"--model", "mlp", "--machine", "dgx-a100", "--jitter", "7"},
       "--jitter: expected a number from 0 to 1"},
      {{"--model", "mlp", "--machine", "dgx-a100", "--bucket-cap-mb", "1e30"}, "--bucket-cap-mb"},
      {{"--model", "mlp", "--machine", "dgx-a100", "--batch-per-gpu", "9000000000000000000"},
       "--batch-per-gpu: expected at most"},
      {{"--model", "mlp", "--machine", "dgx-a100", "--gpu-counts", "99"}, "dgx-a100 has 8"},
      {{"--model", "mlp", "--machine", "dgx-a100", "--batch-per-gpus", "4"}, "--batch-per-gpu"},
  };
  for (const auto& [typed, expected] : cases) {
    const Answer answer = here.bench(predict(typed));
    EXPECT_EQ(answer.exit_code, 2) << expected;
    EXPECT_EQ(answer.out, "") << expected;
    EXPECT_NE(answer.err.find(expected), std::string::npos) << answer.err;
  }
}

TEST(Validate, PrintsEverySourceAndFailsBeyondTheLimit) {
  const Workspace here;
  const Answer answer = here.bench({"validate", "--worker", "mock", "--recordings", "recordings",
                                    "--source", "DGX-1", "--limit", "0.001"});
  EXPECT_EQ(answer.exit_code, 1) << answer.err;
  for (const char* part : {"published", "predicted", "error", "DGX-1 V100, buckets", "resnet101",
                           "not seen the machine", "Which of two"}) {
    EXPECT_NE(answer.out.find(part), std::string::npos) << part;
  }
  const Answer loose = here.bench({"validate", "--worker", "mock", "--recordings", "recordings",
                                   "--source", "DGX-1", "--limit", "1000", "--format", "json"});
  EXPECT_EQ(loose.exit_code, 0) << loose.err;
  EXPECT_GT(Json::parse(loose.out).at("rows").size(), 20U);
}

TEST(Validate, ComparesRunsWithoutASingleDeviceStep) {
  const Workspace here;
  const Answer answer = here.bench({"validate", "--worker", "mock", "--recordings", "recordings",
                                    "--source", "TITAN RTX: transformers", "--format", "json"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  const Json ratios = Json::parse(answer.out).at("ratios");
  ASSERT_EQ(ratios.size(), 2U);
  EXPECT_EQ(ratios[0].at("tuned"), "");
  EXPECT_NE(ratios[1].at("tuned"), "");
  EXPECT_GT(ratios[0].at("predicted"), 0);
}

TEST(Validate, RefusesWhatItDoesNotUnderstand) {
  const Workspace here;
  EXPECT_EQ(here.bench({"validate", "--worker", "mock", "--source", "nobody"}).exit_code, 2);
  EXPECT_EQ(here.bench({"validate", "--worker", "mock", "--limit", "-3"}).exit_code, 2);
  const Answer models = here.bench({"validate", "--worker", "mock", "--models", "nowhere"});
  EXPECT_EQ(models.exit_code, 2);
  EXPECT_NE(models.err.find("--models: expected a directory"), std::string::npos) << models.err;
}

}  // namespace
}  // namespace bench::cli_test
