// Jobs through the real launcher and the mock worker of the real `bench`: one answer per job,
// whatever the worker does.
#include "bench/launch/job_runner.hpp"

#include "bench/core/strategy.hpp"
#include "bench/core/temporary_directory.hpp"
#include "bench/launch/mock_worker.hpp"
#include "bench/launch/reserved_port.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace bench {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class JobRunnerTest : public testing::Test {
 protected:
  JobRunnerTest() {
    settings_.program = {BENCH_PROGRAM, "worker"};
    settings_.log_root = directory_;
    settings_.limits = {60s, 120s, 100ms, 200ms};  // only a hang may reach them
  }
  ~JobRunnerTest() override {
    ::unsetenv("BENCH_MOCK_FAULTS");
    EXPECT_TRUE(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) << "a process is left";
  }

  static Job job(JobKind kind, std::int64_t batch, int gpus = 1) {
    Job result;
    result.kind = kind;
    result.steps = 2;
    result.work.scenario = "test";
    result.work.model.name = "mlp";
    result.work.batch = batch;
    if (gpus > 1) result.work.strategy = Strategy::distributed;
    result.work.gpus.resize(static_cast<std::size_t>(gpus));
    for (int i = 0; i < gpus; ++i) result.work.gpus[static_cast<std::size_t>(i)] = i;
    return result;
  }
  static void faults(const char* text) { ::setenv("BENCH_MOCK_FAULTS", text, 1); }

  std::vector<JobOutcome> run_batch(const std::vector<Job>& jobs) {
    std::vector<JobOutcome> outcomes;
    JobRunner(settings_).run_batch(jobs, "batch", [&](std::size_t index, JobOutcome outcome) {
      EXPECT_EQ(index, outcomes.size());
      outcomes.push_back(std::move(outcome));
    });
    return outcomes;
  }

  const TemporaryDirectory folder_;
  const fs::path directory_ = folder_.path();
  LaunchSettings settings_;
};

TEST_F(JobRunnerTest, EveryRankReports) {
  const JobOutcome outcome = JobRunner(settings_).run(job(JobKind::verify, 8, 3), "verify");
  EXPECT_EQ(outcome.status, RankStatus::ok) << outcome.message;
  ASSERT_EQ(outcome.reports.size(), 3u);
  EXPECT_EQ(outcome.reports[2].rank, 2);
  EXPECT_EQ(outcome.reports[2].fingerprint.losses.size(), 2u);
  EXPECT_TRUE(fs::exists(directory_ / "verify" / "2" / "stderr.log"));
}

TEST_F(JobRunnerTest, ACrashNamesTheRankAndItsLog) {
  faults("crash@");
  const JobOutcome outcome = JobRunner(settings_).run(job(JobKind::verify, 8, 2), "verify");
  EXPECT_EQ(outcome.status, RankStatus::error);
  EXPECT_NE(outcome.message.find("rank 1 of 2 was killed by signal 11"), std::string::npos)
      << outcome.message;
  EXPECT_NE(outcome.message.find("verify/1/stderr.log"), std::string::npos) << outcome.message;
  EXPECT_NE(outcome.message.find("deliberate fault 'crash'"), std::string::npos);
}

TEST_F(JobRunnerTest, MemoryThatDoesNotSufficeIsNoError) {
  faults("oom@");
  const JobOutcome outcome = JobRunner(settings_).run(job(JobKind::verify, 8, 2), "verify");
  EXPECT_EQ(outcome.status, RankStatus::out_of_memory) << outcome.message;
}

TEST_F(JobRunnerTest, OneProcessServesManyJobs) {
  std::vector<Job> jobs;
  for (int i = 1; i <= 6; ++i) jobs.push_back(job(JobKind::measure, i));
  const auto outcomes = run_batch(jobs);
  ASSERT_EQ(outcomes.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(outcomes[i].status, RankStatus::ok);
    EXPECT_DOUBLE_EQ(outcomes[i].reports.at(0).samples.at(1).wall_ms, mock::step_ms(jobs[i].work));
  }
  EXPECT_FALSE(fs::exists(directory_ / "batch-restart1"));
}

TEST_F(JobRunnerTest, ACrashCostsItsJobOnly) {
  for (const char* fault : {"crash@batch:3", "exit@batch:3", "hang@batch:3"}) {
    faults(fault);
    if (std::string_view(fault).starts_with("hang")) settings_.limits.silence = 2s;
    std::vector<Job> jobs;
    for (int i = 1; i <= 5; ++i) jobs.push_back(job(JobKind::measure, i));
    const auto outcomes = run_batch(jobs);
    ASSERT_EQ(outcomes.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(outcomes[i].status, i == 2 ? RankStatus::error : RankStatus::ok) << fault << i;
    }
    EXPECT_NE(outcomes[2].message.find("the worker"), std::string::npos) << outcomes[2].message;
  }
}

TEST_F(JobRunnerTest, RanksServeManyJobsTogether) {
  faults("crash@batch:3,error@batch:5");
  std::vector<Job> jobs;
  for (int i = 1; i <= 6; ++i) jobs.push_back(job(JobKind::verify, i, 2));
  const auto outcomes = run_batch(jobs);
  ASSERT_EQ(outcomes.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    const bool faulty = i == 2 || i == 4;
    EXPECT_EQ(outcomes[i].status, faulty ? RankStatus::error : RankStatus::ok) << i;
    EXPECT_TRUE(faulty || outcomes[i].reports.size() == 2) << i;
  }
  EXPECT_NE(outcomes[4].message.find("deliberate error"), std::string::npos);
}

// The second of two failing jobs gets a process of its own, so that the first cannot be its cause.
TEST_F(JobRunnerTest, ErrorsAfterAnErrorAreTriedAgain) {
  faults("error@batch:1,error@batch:3");
  const auto outcomes =
      run_batch({job(JobKind::measure, 1), job(JobKind::measure, 2), job(JobKind::measure, 3)});
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(outcomes[1].status, RankStatus::ok);
  EXPECT_EQ(outcomes[2].status, RankStatus::error);
  EXPECT_EQ(outcomes[2].message, "deliberate error");
  EXPECT_TRUE(fs::exists(directory_ / "batch-restart1"));
}

TEST_F(JobRunnerTest, AReportedErrorDoesNotEndTheProcess) {
  faults("error@batch:1,oom@batch:2");
  const auto outcomes =
      run_batch({job(JobKind::measure, 1), job(JobKind::measure, 2), job(JobKind::measure, 3)});
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(outcomes[0].status, RankStatus::error);
  EXPECT_EQ(outcomes[0].message, "deliberate error");
  EXPECT_EQ(outcomes[1].status, RankStatus::out_of_memory);
  EXPECT_EQ(outcomes[2].status, RankStatus::ok);
  EXPECT_FALSE(fs::exists(directory_ / "batch-restart1"));
}

// Binds a socket to a loopback port, and listens.
bool can_listen(int port, bool reuse) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int value = reuse ? 1 : 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &value, sizeof(value));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
         ::listen(socket.get(), 1) == 0;
}

TEST(ReservedPort, IsForWhoKnowsThatItIsReserved) {
  const ReservedPort port;
  EXPECT_FALSE(can_listen(port.number(), false));
  EXPECT_TRUE(can_listen(port.number(), true));
  EXPECT_NE(ReservedPort().number(), port.number());
}

TEST(LogLabel, HoldsNoSeparators) {
  EXPECT_EQ(log_label("dp_vs_ddp/model:mlp/gpus:2"), "dp_vs_ddp_model-mlp_gpus-2");
}

}  // namespace
}  // namespace bench
