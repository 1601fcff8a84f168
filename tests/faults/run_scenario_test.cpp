// Whole runs through the harness with the mock worker of the real `bench`: exact figures, faults
// that cost one case, results that survive an interruption.
#include "bench/harness/run_scenario.hpp"

#include "bench/core/error.hpp"
#include "bench/core/run_json.hpp"
#include "bench/core/strategy.hpp"
#include "bench/core/temporary_directory.hpp"
#include "bench/launch/interrupt.hpp"
#include "bench/launch/job_runner.hpp"
#include "bench/launch/mock_worker.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

namespace bench {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::string read_text(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class RunScenario : public testing::Test {
 protected:
  RunScenario() {
    request_.out = folder_.path();
    request_.worker = BENCH_PROGRAM;
    request_.worker_arguments = {"worker"};
    request_.plan.scenario = "s";
  }
  ~RunScenario() override {
    ::unsetenv("BENCH_MOCK_FAULTS");
    EXPECT_TRUE(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) << "a process is left";
  }

  void add(Strategy strategy, int gpus, std::int64_t batch, DeviceKind device = DeviceKind::cpu) {
    PlannedCase planned;
    Case& work = planned.work;
    work.scenario = "s";
    work.model.name = "m";
    work.strategy = strategy;
    work.batch = batch;
    work.device = device;
    work.execute = device == DeviceKind::vgpu ? Execute::shape : Execute::numeric;
    if (device == DeviceKind::vgpu) work.machine = "4xv100-sxm2";
    work.gpus.clear();
    for (int i = 0; i < gpus; ++i) work.gpus.push_back(i);
    request_.plan.cases.push_back(planned);
  }
  void add_comparison(DeviceKind device) {
    add(Strategy::single, 1, 16, device);
    add(Strategy::single, 1, 32, device);
    if (device == DeviceKind::vgpu) add(Strategy::data_parallel, 2, 32, device);
    add(Strategy::distributed, 2, 32, device);
  }
  RunOutcome run() { return run_scenario(request_, out_, progress_); }
  static const CaseResult& find(const RunOutcome& outcome, const std::string& part) {
    for (const CaseResult& result : outcome.result.cases) {
      if (result.name().find(part) != std::string::npos) return result;
    }
    throw std::runtime_error("no case " + part);
  }
  static void faults(const char* text) { ::setenv("BENCH_MOCK_FAULTS", text, 1); }

  const TemporaryDirectory folder_;
  RunRequest request_;
  std::ostringstream out_;
  std::ostringstream progress_;
};

TEST_F(RunScenario, MeasuredFiguresAreExact) {
  add_comparison(DeviceKind::cpu);
  const RunOutcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0) << progress_.str();
  ASSERT_EQ(outcome.result.cases.size(), 3u);
  const CaseResult& ddp = find(outcome, "distributed");
  EXPECT_EQ(ddp.status, CaseStatus::done) << ddp.message;
  const double single_ms = mock::kSingleFixedMs + 32 * mock::kMsPerSample;
  const double half_ms = mock::kSingleFixedMs + 16 * mock::kMsPerSample;
  const double ddp_ms = half_ms + mock::kReduceMs;
  EXPECT_DOUBLE_EQ(ddp.metric("step_ms_p50"), ddp_ms);
  EXPECT_DOUBLE_EQ(ddp.metric("items_per_second"), 32e3 / ddp_ms);
  EXPECT_DOUBLE_EQ(ddp.metric("speedup_vs_single"), single_ms / ddp_ms);
  EXPECT_DOUBLE_EQ(ddp.metric("scaling_efficiency"), half_ms / ddp_ms);
  EXPECT_EQ(ddp.metric("verified"), 1);
  EXPECT_EQ(ddp.memory.size(), 2u);
  EXPECT_FALSE(outcome.result.context.simulated);
  EXPECT_FALSE(ddp.simulated);
  EXPECT_EQ(out_.str(), "") << "standard output is for results";
}

TEST_F(RunScenario, EveryRankAndStepIsInTheSamples) {
  add(Strategy::distributed, 2, 32);
  (void)run();
  const std::string samples = read_text(request_.out / "samples.jsonl");
  EXPECT_EQ(std::count(samples.begin(), samples.end(), '\n'), 2 * 5);
  EXPECT_NE(samples.find("\"simulated\":false"), std::string::npos);
}

TEST_F(RunScenario, AWrongResultHasNoTiming) {
  for (const char* fault : {"factor@distributed", "local@distributed", "seed@distributed"}) {
    faults(fault);
    request_.plan.cases.clear();
    add_comparison(DeviceKind::cpu);
    const RunOutcome outcome = run();
    EXPECT_EQ(outcome.exit_code, 1) << fault;
    const CaseResult& ddp = find(outcome, "distributed");
    EXPECT_EQ(ddp.status, CaseStatus::wrong) << fault;
    EXPECT_TRUE(ddp.metrics.empty()) << fault;
    EXPECT_EQ(read_text(request_.out / "samples.jsonl").find("distributed"), std::string::npos);
    EXPECT_EQ(find(outcome, "single").status, CaseStatus::done);
  }
}

TEST_F(RunScenario, RoundingIsNoWrongResult) {
  faults("rounding@distributed");
  add_comparison(DeviceKind::cpu);
  EXPECT_EQ(run().exit_code, 0) << progress_.str();
}

TEST_F(RunScenario, AFaultCostsItsCaseOnly) {
  for (const char* fault : {"crash@batch:64", "exit@batch:64", "hang@batch:64"}) {
    faults(fault);
    if (std::string_view(fault).starts_with("hang")) request_.case_time_out = 2s;
    request_.plan.cases.clear();
    add(Strategy::distributed, 2, 32);
    add(Strategy::distributed, 2, 64);
    add(Strategy::distributed, 2, 128);
    const RunOutcome outcome = run();
    EXPECT_EQ(outcome.exit_code, 1);
    const CaseResult& failed = find(outcome, "batch:64");
    EXPECT_EQ(failed.status, CaseStatus::failed);
    EXPECT_NE(failed.message.find("rank 1 of 2"), std::string::npos) << failed.message;
    EXPECT_NE(failed.message.find("stderr.log"), std::string::npos) << failed.message;
    EXPECT_EQ(find(outcome, "batch:32").status, CaseStatus::done);
    EXPECT_EQ(find(outcome, "batch:128").status, CaseStatus::done);
  }
}

TEST_F(RunScenario, MemoryThatDoesNotSufficeIsASkip) {
  faults("oom@batch:64");
  add(Strategy::distributed, 2, 64);
  const RunOutcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.result.cases[0].status, CaseStatus::skipped);
  EXPECT_NE(outcome.result.cases[0].message.find("out of memory"), std::string::npos);
}

TEST_F(RunScenario, PlannedSkipsKeepTheirReason) {
  add(Strategy::distributed, 4, 2);
  request_.plan.cases[0].skip = Skip{"a batch of 2 leaves ranks without samples"};
  const RunOutcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.result.cases.at(0).status, CaseStatus::skipped);
  EXPECT_EQ(outcome.result.cases.at(0).message, "a batch of 2 leaves ranks without samples");
}

TEST_F(RunScenario, AMissingWorkerIsAMachineError) {
  add(Strategy::single, 1, 8);
  request_.worker = "/no/such/worker";
  EXPECT_THROW((void)run(), MachineError);
}

TEST_F(RunScenario, CtrlCKeepsFinishedCasesAndResumeContinues) {
  add(Strategy::single, 1, 8);
  add(Strategy::single, 1, 16);
  faults("hang@batch:16");
  const fs::path hanging = request_.out / "logs" /
                           log_label("s/model:m/strategy:single/gpus:1/batch:16") / "0/stderr.log";
  std::thread user([&hanging] {
    while (read_text(hanging).find("deliberate fault 'hang'") == std::string::npos)
      std::this_thread::sleep_for(5ms);
    ::kill(::getpid(), SIGINT);
  });
  const RunOutcome stopped = run();
  user.join();
  EXPECT_EQ(stopped.exit_code, kExitInterrupted);
  ASSERT_EQ(stopped.result.cases.size(), 1u);
  EXPECT_EQ(load_run(request_.out.string()).cases.size(), 1u);

  faults("crash@batch:8");  // the finished case must not run again
  request_.resume = true;
  const RunOutcome resumed = run();
  EXPECT_EQ(resumed.exit_code, 0) << progress_.str();
  ASSERT_EQ(resumed.result.cases.size(), 2u);
  EXPECT_EQ(resumed.result.cases[0].work.batch, 8);
  const std::string samples = read_text(request_.out / "samples.jsonl");
  EXPECT_EQ(std::count(samples.begin(), samples.end(), '\n'), 2 * 5);
}

TEST_F(RunScenario, ResumeRefusesAnotherRun) {
  add(Strategy::single, 1, 8);
  (void)run();
  request_.resume = true;
  request_.plan.scenario = "other";
  EXPECT_THROW((void)run(), UsageError);
}

TEST_F(RunScenario, FilterTakesCanonicalNames) {
  add_comparison(DeviceKind::cpu);
  request_.benchmark_flags = {"--benchmark_filter=strategy:distributed/gpus:2/batch:32$",
                              "--benchmark_list_tests"};
  const RunOutcome listed = run();
  EXPECT_TRUE(listed.out_used);
  EXPECT_EQ(out_.str(), "s/model:m/strategy:distributed/gpus:2/batch:32\n");
  out_.str("");
  request_.benchmark_flags = {"--benchmark_filter=-strategy:distributed",
                              "--benchmark_list_tests=true"};
  (void)run();
  EXPECT_EQ(
      out_.str(),
      "s/model:m/strategy:single/gpus:1/batch:16\ns/model:m/strategy:single/gpus:1/batch:32\n");
}

TEST_F(RunScenario, FilteredCasesKeepTheirReferences) {
  add_comparison(DeviceKind::cpu);
  request_.benchmark_flags = {"--benchmark_filter=distributed"};
  const RunOutcome outcome = run();
  EXPECT_GT(find(outcome, "distributed").metric("speedup_vs_single"), 1);
}

TEST_F(RunScenario, BadBenchmarkFlagsAreUsageErrors) {
  add(Strategy::single, 1, 8);
  for (const char* flag :
       {"--benchmark_filter=(", "--benchmark_filter=nothing", "--benchmark_fromat=json",
        "--benchmark_format=xml", "--benchmark_repetitions=many", "--benchmark_list_tests=maybe"}) {
    request_.benchmark_flags = {flag};
    EXPECT_THROW((void)run(), UsageError) << flag;
  }
  request_.benchmark_flags = {"--benchmark_out=/no/such/directory/x.json"};
  EXPECT_THROW((void)run(), MachineError);
}

TEST_F(RunScenario, GoogleBenchmarksJsonHasCanonicalNamesAndOurKeys) {
  add_comparison(DeviceKind::cpu);
  request_.plan.cases[0].skip = Skip{"because"};
  const fs::path file = request_.out / "gb.json";
  request_.benchmark_flags = {"--benchmark_format=json", "--benchmark_out=" + file.string(),
                              "--benchmark_repetitions=3"};
  const RunOutcome outcome = run();
  EXPECT_TRUE(outcome.out_used);
  for (const std::string& text : {out_.str(), read_text(file)}) {
    const auto json = nlohmann::json::parse(text);
    EXPECT_EQ(json["context"]["simulated"], false);
    EXPECT_EQ(json["benchmarks"][0]["name"], "s/model:m/strategy:single/gpus:1/batch:16");
    EXPECT_EQ(json["benchmarks"][0]["skipped"], true);
    EXPECT_EQ(json["benchmarks"][0]["skip_message"], "because");
    int repetitions = 0;
    for (const auto& entry : json["benchmarks"]) {
      if (entry["name"] != "s/model:m/strategy:distributed/gpus:2/batch:32") continue;
      ++repetitions;
      EXPECT_DOUBLE_EQ(entry["real_time"].get<double>(), 13);
      EXPECT_EQ(entry["time_unit"], "ms");
      EXPECT_EQ(entry["verified"], 1);
    }
    EXPECT_EQ(repetitions, 3);
  }
  EXPECT_EQ(find(outcome, "distributed").samples.count, 3 * 5) << "repetitions are pooled";
}

TEST_F(RunScenario, CsvHasACounterColumnForEveryCase) {
  add_comparison(DeviceKind::cpu);
  request_.benchmark_flags = {"--benchmark_format=csv"};
  (void)run();
  const std::string header = out_.str().substr(0, out_.str().find('\n'));
  EXPECT_NE(header.find("peak_bytes_gpu1"), std::string::npos) << header;
}

TEST_F(RunScenario, SimulatedRunsSaySo) {
  add_comparison(DeviceKind::vgpu);
  request_.benchmark_flags = {"--benchmark_format=console"};
  const RunOutcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0) << progress_.str();
  EXPECT_TRUE(outcome.result.context.simulated);
  EXPECT_NE(out_.str().find("simulated on 4xv100-sxm2"), std::string::npos) << out_.str();
  const auto json = nlohmann::json::parse(read_text(request_.out / "results.json"));
  EXPECT_EQ(json["context"]["simulated"], true);
  EXPECT_NE(read_text(request_.out / "samples.jsonl").find("\"simulated\":true"),
            std::string::npos);
  const CaseResult& ddp = find(outcome, "distributed");
  EXPECT_GT(ddp.metric("step_ms_p50"), 0);
  EXPECT_GT(ddp.metric("comm_overlap"), 0);
  EXPECT_EQ(ddp.memory.size(), 2u);
  EXPECT_GT(find(outcome, "data_parallel").metric("primary_imbalance"), 1);
  EXPECT_TRUE(fs::exists(request_.out / ddp.trace_file)) << ddp.trace_file;
  EXPECT_TRUE(fs::exists(request_.out / "timeline.json.gz"));
  EXPECT_TRUE(fs::exists(request_.out / "report.html"));
  EXPECT_FALSE(fs::exists(request_.out / "graphs")) << "recordings are temporary";
}

TEST_F(RunScenario, SimulatedRunsAreTheSameToTheByte) {
  add_comparison(DeviceKind::vgpu);
  std::vector<std::string> metrics;
  for (int round = 0; round < 2; ++round) {
    nlohmann::json all;
    for (const CaseResult& result : run().result.cases) all[result.name()] = result.metrics;
    metrics.push_back(all.dump());
  }
  EXPECT_EQ(metrics[0], metrics[1]);
}

TEST_F(RunScenario, AMeasuredSingleStepAnchorsTheSimulation) {
  add(Strategy::single, 1, 32, DeviceKind::vgpu);
  add(Strategy::distributed, 2, 32, DeviceKind::vgpu);
  const double plain_ms = find(run(), "single").metric("step_ms_p50");
  request_.measured_single_ms = 1.5 * plain_ms;
  const RunOutcome anchored = run();
  EXPECT_NEAR(find(anchored, "single").metric("step_ms_p50"), 1.5 * plain_ms, 0.001 * plain_ms);
  EXPECT_NE(anchored.result.context.notes.at(0).find("anchored"), std::string::npos);
  add(Strategy::single, 1, 64, DeviceKind::vgpu);
  EXPECT_THROW((void)run(), UsageError) << "two candidates";
}

TEST_F(RunScenario, TheLargestBatchIsFound) {
  add(Strategy::distributed, 2, 2, DeviceKind::vgpu);
  PlannedCase& planned = request_.plan.cases[0];
  planned.search = BatchSearch{2, 4096, 2};
  planned.work.device_memory_bytes = 3 * mock::kParameterBytes + 100 * (8ull << 20);
  const RunOutcome outcome = run();
  ASSERT_EQ(outcome.result.cases.size(), 1u);
  const CaseResult& found = outcome.result.cases[0];
  EXPECT_EQ(found.status, CaseStatus::done) << found.message;
  // Parameters and buckets are always there, gradients come when activations go.
  EXPECT_EQ(found.work.batch, 2 * 112);
  EXPECT_NE(found.facts.at("next_batch").find("226 does not fit"), std::string::npos);
  EXPECT_NE(found.facts.at("batch_limit").find("activations"), std::string::npos);
}

}  // namespace
}  // namespace bench
