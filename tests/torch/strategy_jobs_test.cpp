// Jobs as the parent sees them: recordings, skips, failures; and a user's TorchScript file under
// every strategy.
#include "bench/core/strategy.hpp"
#include "bench/core/temporary_directory.hpp"
#include "simulator/graph_io.hpp"

#include "training/jobs/job_runner.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "tests/torch/python_oracle.hpp"
#include "tests/torch/strategy_harness.hpp"

namespace bench::training {
namespace {

// Runs one job as the only process of its case, its messages going nowhere.
RankReport run(const Job& job) {
  WorkerChannel channel(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  Job largest = job;  // virtual GPUs are registered once, for the largest case of this program
  largest.work.strategy = Strategy::data_parallel;
  largest.work.gpus = {0, 1, 2, 3, 4, 5, 6, 7};
  JobContext context(RankContext{}, channel, {largest, job});
  context.begin_job(0);
  return run_job(job, context);
}

Job record_job(Strategy strategy, int gpus, Execute execute) {
  Job job;
  job.kind = JobKind::record;
  job.work = twin_case("resnet18", strategy, gpus, 4);
  job.work.model.input_shape = {3, 32, 32};
  job.work.execute = execute;
  static const TemporaryDirectory folder;
  job.graph_file =
      folder.file(std::string(strategy_name(strategy)) + execute_name(execute) + ".graph");
  return job;
}

// Takes every core away again and again, so that threads of a recording meet the scheduler's worst.
// Half of the time is left to the recording, which would otherwise wait for its turn on a machine
// that is busy by itself.
class BusyMachine {
 public:
  BusyMachine() {
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      threads_.emplace_back([](const std::stop_token& stop) {
        constexpr std::chrono::milliseconds kTurn{1};
        while (!stop.stop_requested()) {
          const auto until = std::chrono::steady_clock::now() + kTurn;
          while (std::chrono::steady_clock::now() < until) {
          }
          std::this_thread::sleep_for(kTurn);
        }
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

class Recording : public testing::TestWithParam<Strategy> {};

TEST_P(Recording, ShapeExecutionRecordsWhatNumericExecutionDoes) {
  std::string bytes[2];
  const int gpus = GetParam() == Strategy::single ? 1 : 2;
  for (const Execute execute : {Execute::shape, Execute::numeric}) {
    // Only one process: a distributed case of several ranks is recorded in shape execution alone.
    const bool alone = GetParam() == Strategy::distributed;
    const auto job = record_job(GetParam(), alone ? 1 : gpus, execute);
    const auto report = run(job);
    ASSERT_EQ(report.status, RankStatus::ok) << report.message;
    const auto graph = simulator::read_graph(job.graph_file);
    EXPECT_EQ(report.memory.at(0).peak_bytes, graph.peak_memory(0).bytes);
    bytes[static_cast<int>(execute)] = simulator::encode_graph(graph);
  }
  EXPECT_TRUE(bytes[0] == bytes[1]);
}

TEST_P(Recording, IsTheSameEveryTime) {
  constexpr int kRepetitions = 6;
  std::optional<BusyMachine> load;
  std::string first;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    if (repetition > 0 && !load) load.emplace();  // the first one meets no load
    const auto job = record_job(GetParam(), GetParam() == Strategy::single ? 1 : 4, Execute::shape);
    const auto report = run(job);
    ASSERT_EQ(report.status, RankStatus::ok) << report.message;
    const auto bytes = simulator::encode_graph(simulator::read_graph(job.graph_file));
    if (repetition == 0) first = bytes;
    EXPECT_TRUE(bytes == first) << "repetition " << repetition;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategy, Recording,
                         testing::Values(Strategy::single, Strategy::data_parallel,
                                         Strategy::libtorch_data_parallel, Strategy::distributed),
                         [](const auto& info) { return strategy_name(info.param); });

TEST(Jobs, ABatchThatLeavesARankEmptyIsASkip) {
  auto job = record_job(Strategy::distributed, 8, Execute::shape);
  const auto report = run(job);
  EXPECT_EQ(report.status, RankStatus::skip);
  EXPECT_EQ(report.message, "a batch of 4 leaves ranks without samples on 8 GPUs");
}

TEST(Jobs, AMissingGpuIsASkip) {
  auto job = record_job(Strategy::single, 1, Execute::numeric);
  job.kind = JobKind::measure;
  job.work.device = DeviceKind::cuda;
  job.work.gpus = {99};
  const auto report = run(job);
  EXPECT_EQ(report.status, RankStatus::skip);
  EXPECT_EQ(report.message.rfind("needs GPU 99, found ", 0), 0U) << report.message;
}

TEST(Jobs, TooLittleMemoryIsReportedInTheAllocatorsWords) {
  auto job = record_job(Strategy::single, 1, Execute::shape);
  job.work.device_memory_bytes = 64 << 20;
  const auto report = run(job);
  EXPECT_EQ(report.status, RankStatus::out_of_memory);
  EXPECT_NE(report.message.find("out of memory"), std::string::npos) << report.message;
}

TEST(Jobs, AnUnknownModelIsAnError) {
  auto job = record_job(Strategy::single, 1, Execute::shape);
  job.work.model.name = "resnet81";
  const auto report = run(job);
  EXPECT_EQ(report.status, RankStatus::error);
  EXPECT_NE(report.message.find("resnet18"), std::string::npos) << report.message;
}

TEST(Jobs, ProbeSaysWhatTheBuildLinks) {
  Job job;
  job.kind = JobKind::probe;
  const auto report = run(job);
  EXPECT_EQ(report.status, RankStatus::ok);
  EXPECT_EQ(report.facts.at("gloo"), "available");
  EXPECT_EQ(report.facts.count("nccl"), 1U);
  EXPECT_EQ(report.counters.count("cuda.devices"), 1U);
}

TEST(Jobs, MeasureTakesTheStepsItWasAskedFor) {
  auto job = record_job(Strategy::single, 1, Execute::numeric);
  job.kind = JobKind::measure;
  job.work.device = DeviceKind::cpu;
  job.work.steps = 3;
  job.work.warmup = 1;
  const auto report = run(job);
  ASSERT_EQ(report.status, RankStatus::ok) << report.message;
  ASSERT_EQ(report.samples.size(), 3U);
  EXPECT_GT(report.samples[0].phase_ms.at("forward"), 0);
  EXPECT_GT(report.samples[0].wall_ms, report.samples[0].phase_ms.at("forward"));
  EXPECT_GT(report.memory.at(0).peak_bytes, 0U);
}

class ScriptFile : public testing::TestWithParam<Strategy> {};

TEST_P(ScriptFile, TrainsLikeOneDevice) {
  auto work = twin_case("squeezenet1_1", GetParam(), 2, 4);
  work.model.file = oracle_path("squeezenet1_1.pt");
  work.model.input_shape = {3, 64, 64};
  const auto apart = difference(train(work, 2), train_reference(work, 2, {}));
  EXPECT_LT(apart.loss, kBatchNormTolerance);
  EXPECT_LT(apart.parameter, kBatchNormTolerance);
}

INSTANTIATE_TEST_SUITE_P(Strategy, ScriptFile,
                         testing::Values(Strategy::data_parallel, Strategy::libtorch_data_parallel,
                                         Strategy::distributed),
                         [](const auto& info) { return strategy_name(info.param); });

}  // namespace
}  // namespace bench::training
