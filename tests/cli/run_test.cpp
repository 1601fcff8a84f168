// Whole runs of the real program over the mock worker: what a user reads, what a script finds in
// the output directory, and the exit code, when all goes well and when it does not.
#include <gtest/gtest.h>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

// Two strategies on two virtual GPUs; milliseconds with the mock worker.
std::vector<std::string> small_run(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--scenario", "dp_vs_ddp", "--model", "mlp",   "--gpus",
                                        "0,1",        "--batch",   "32",      "--out", "out"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Run, AnswersTheQuestionFirstAndKeepsEverything) {
  const Workspace here;
  const Answer answer = here.bench(small_run());
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_TRUE(answer.out.starts_with("SIMULATED on 4xv100-sxm2")) << answer.out;
  EXPECT_TRUE(holds(answer.out, "DDP is ")) << answer.out;
  EXPECT_FALSE(holds(answer.out, "\x1b[")) << "colours in a file";
  EXPECT_TRUE(holds(answer.err, "dp_vs_ddp/model:mlp/strategy:distributed/gpus:2/batch:32"));
  for (const char* file :
       {"out/results.json", "out/samples.jsonl", "out/timeline.json.gz", "out/report.html"}) {
    EXPECT_TRUE(here.has(file)) << file;
  }
  const std::string results = here.read("out/results.json");
  EXPECT_TRUE(holds(results, "dp_vs_ddp/model:mlp/strategy:data_parallel/gpus:2/batch:32"));
  EXPECT_FALSE(here.has("results"));
}

TEST(Run, SimulatedRunsAreTheSameToTheByte) {
  const Workspace one, two;
  EXPECT_EQ(one.bench(small_run()).out, two.bench(small_run()).out);
  EXPECT_EQ(one.read("out/samples.jsonl"), two.read("out/samples.jsonl"));
}

TEST(Run, WithoutOutResultsGoToADirectoryOfTheirOwn) {
  const Workspace here;
  std::vector<std::string> arguments = small_run();
  arguments.resize(arguments.size() - 2);
  EXPECT_EQ(here.bench(arguments).exit_code, 0);
  EXPECT_EQ(here.bench(arguments).exit_code, 0);
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(here.path() / "results/runs")) {
    EXPECT_TRUE(holds(entry.path().filename(), "-dp_vs_ddp")) << entry.path();
    ++runs;
  }
  EXPECT_EQ(runs, 2);
}

TEST(Run, AUsersOwnScenarioWorksTheSame) {
  const Workspace here;
  here.write("mine.toml",
             "[sweep]\nmodels = [\"mlp\"]\nstrategies = [\"ddp\"]\nbatches = [6, 8]\n"
             "gpu_counts = [4, 64]\n");
  const Answer answer = here.bench({"--scenario", "mine.toml", "--out", "out"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  const std::string results = here.read("out/results.json");
  EXPECT_TRUE(holds(results, "mine/model:mlp/strategy:distributed/gpus:4/batch:8"));
  EXPECT_TRUE(holds(results, "batch 6 on 4 GPUs does not divide evenly"));
  EXPECT_TRUE(holds(results, "needs 64 GPUs, --gpus selects 4"));
}

TEST(Run, MeasuredRunsAreNotCalledSimulated) {
  const Workspace here;
  const Answer answer = here.bench(small_run({"--device", "cpu", "--strategy", "single,ddp"}));
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_FALSE(holds(answer.out, "SIMULATED"));
  EXPECT_TRUE(holds(here.read("out/results.json"), "\"simulated\": false"));
}

TEST(Run, AWrongResultIsExitCodeOneWithoutTimes) {
  const Workspace here;
  const Answer answer = here.bench(small_run(), {{"BENCH_MOCK_FAULTS", "factor@distributed"}});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_TRUE(holds(answer.out, "WRONG RESULT: mlp, DDP, 2 GPUs")) << answer.out;
  EXPECT_FALSE(holds(answer.out, "DDP is ")) << answer.out;
}

TEST(Run, AWorkerThatCrashesCostsItsCaseOnly) {
  const Workspace here;
  const Answer answer = here.bench(small_run({"--device", "cpu", "--strategy", "single,ddp"}),
                                   {{"BENCH_MOCK_FAULTS", "crash@distributed"}});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_TRUE(holds(answer.out + answer.err, "rank 1")) << answer.out << answer.err;
  EXPECT_TRUE(holds(here.read("out/results.json"), "strategy:single"));
}

TEST(Run, AWorkerThatHangsIsEndedInTime) {
  const Workspace here;
  const Answer answer =
      here.bench(small_run({"--device", "cpu", "--strategy", "ddp", "--time-out", "0.3"}),
                 {{"BENCH_MOCK_FAULTS", "hang@distributed"}});
  EXPECT_EQ(answer.exit_code, 1);
}

TEST(Run, WhatDoesNotFitIsASkip) {
  const Workspace here;
  const Answer answer = here.bench(small_run(), {{"BENCH_MOCK_FAULTS", "oom@distributed"}});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_TRUE(holds(here.read("out/results.json"), "\"skipped\": true"));
}

TEST(Run, TheLargestBatchIsSearched) {
  const Workspace here;
  const Answer answer = here.bench({"--scenario", "max_batch", "--out", "out"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_TRUE(holds(here.read("out/results.json"), "max_batch/model:resnet50"));
}

TEST(Output, ThatCannotBeWrittenIsRefusedBeforeAnyWork) {
  const Workspace here;
  here.write("file", "kept");
  const Answer in_the_way = here.bench({"--scenario", "dp_vs_ddp", "--out", "file"});
  EXPECT_EQ(in_the_way.exit_code, 2);
  EXPECT_TRUE(holds(in_the_way.err, "--out: 'file' is a file; expected a directory"));
  EXPECT_EQ(here.read("file"), "kept");
  const Answer below_file = here.bench({"--scenario", "dp_vs_ddp", "--out", "file/out"});
  EXPECT_EQ(below_file.exit_code, 3);
  EXPECT_TRUE(holds(below_file.err, "--out: cannot create 'file/out'")) << below_file.err;
  const Answer read_only = here.bench({"--scenario", "dp_vs_ddp", "--out", "/proc/bench"});
  EXPECT_EQ(read_only.exit_code, 3);
}

TEST(Output, OfAnEarlierRunSurvivesAMistake) {
  const Workspace here;
  ASSERT_EQ(here.bench(small_run()).exit_code, 0);
  const std::string results = here.read("out/results.json");
  const std::string command = here.read("out/command.json");
  EXPECT_EQ(here.bench(small_run({"--steps", "none"})).exit_code, 2);
  EXPECT_EQ(here.bench(small_run({"--benchmark_filter=("})).exit_code, 2);
  EXPECT_EQ(here.bench(small_run({"--worker", "/no/such/worker"})).exit_code, 3);
  EXPECT_EQ(here.read("out/results.json"), results);
  EXPECT_EQ(here.read("out/command.json"), command);
}

TEST(Worker, ThatIsMissingIsTheMachinesFault) {
  const Workspace here;
  const Answer answer = here.bench(small_run(), {{"BENCH_WORKER", "/no/such/worker"}});
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_TRUE(holds(answer.err, "BENCH_WORKER: '/no/such/worker' is not an executable program"));
  EXPECT_FALSE(here.has("out"));
}

TEST(Benchmark, JsonOnStandardOutputIsNothingButJson) {
  const Workspace here;
  const Answer answer = here.bench(small_run({"--benchmark_format=json"}));
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_TRUE(answer.out.starts_with("{")) << answer.out;
  EXPECT_TRUE(answer.out.ends_with("}\n")) << answer.out;
}

TEST(Benchmark, ListingStartsAndWritesNothing) {
  const Workspace here;
  const Answer answer =
      here.bench(small_run({"--benchmark_list_tests", "--benchmark_filter=distributed"}));
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.out, "dp_vs_ddp/model:mlp/strategy:distributed/gpus:2/batch:32\n");
  EXPECT_FALSE(here.has("out"));
}

TEST(Resume, ContinuesWithoutRepeatingTheCommand) {
  const Workspace here;
  const std::vector<std::string> run = small_run({"--device", "cpu", "--strategy", "single,ddp"});
  const Answer stopped =
      here.bench_interrupted_at("[2/3] ", run, {{"BENCH_MOCK_FAULTS", "hang@distributed"}});
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_FALSE(holds(here.read("out/results.json"), "strategy:distributed"));

  // What had finished must not run again: batch 16 would crash now.
  const Answer resumed = here.bench({"--resume", "out"}, {{"BENCH_MOCK_FAULTS", "crash@batch:16"}});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(holds(here.read("out/results.json"), "strategy:distributed"));
}

TEST(Resume, NeedsARun) {
  const Workspace here;
  std::filesystem::create_directory(here.path() / "empty");
  EXPECT_EQ(here.bench({"--resume", "missing"}).exit_code, 2);
  const Answer empty = here.bench({"--resume", "empty"});
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_TRUE(holds(empty.err, "holds no run (no command.json)")) << empty.err;
  here.write("empty/command.json", "{]");
  EXPECT_EQ(here.bench({"--resume", "empty"}).exit_code, 2);
}

}  // namespace
}  // namespace bench::cli_test
