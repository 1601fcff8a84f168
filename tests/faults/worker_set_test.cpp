// The launcher against workers that fail: which rank x at which moment x how. Every case must name
// the rank to blame, end the others and leave no process behind, long before the limits of ranks
// that are well.
#include "bench/launch/worker_set.hpp"

#include "bench/core/error.hpp"
#include "bench/core/file_text.hpp"
#include "bench/core/temporary_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace bench {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// For ranks that never end, only the limit that the test waits for is short. Others are given time
// for a busy machine, and a fault that were only noticed by a limit would break the deadline.
constexpr WorkerLimits kSilenceLimits{1500ms, 120s, 100ms, 200ms};
constexpr WorkerLimits kJobLimits{60s, 1s, 100ms, 200ms};
constexpr WorkerLimits kPatientLimits{60s, 120s, 100ms, 200ms};
constexpr auto kDeadline = 20s;

struct FaultCase {
  const char* kind;
  const char* moment;
  EndKind expected;
};

std::ostream& operator<<(std::ostream& out, const FaultCase& c) {
  return out << c.kind << "_" << c.moment;
}

class LogDir {
 public:
  fs::path rank(int rank) const {
    const fs::path dir = folder_.path() / std::to_string(rank);
    fs::create_directories(dir);
    return dir;
  }
  std::string sign() const { return folder_.file("sign"); }
  std::string text(int rank) const {
    return file_text(this->rank(rank) / "stderr.log").value_or("");
  }
  // Once the worker has written this, which it does unless the launcher is broken.
  void wait_for(int rank, const std::string& words) const {
    while (text(rank).find(words) == std::string::npos) std::this_thread::sleep_for(5ms);
  }

 private:
  TemporaryDirectory folder_;
};

std::vector<WorkerSpec> specs(const LogDir& logs, int world_size, const std::string& kind,
                              int faulty_rank, const std::string& moment) {
  std::vector<WorkerSpec> result;
  for (int rank = 0; rank < world_size; ++rank) {
    WorkerSpec spec;
    spec.rank = rank;
    spec.process.argv = {FAULT_WORKER, kind, std::to_string(faulty_rank), moment, logs.sign()};
    spec.process.environment = {{"RANK", std::to_string(rank)},
                                {"WORLD_SIZE", std::to_string(world_size)}};
    spec.process.log_dir = logs.rank(rank);
    result.push_back(spec);
  }
  return result;
}

bool no_child_left() { return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }

class FaultMatrix : public testing::TestWithParam<std::tuple<int, FaultCase>> {};

TEST_P(FaultMatrix, NamesTheRankAndEndsTheOthers) {
  const auto [faulty_rank, fault] = GetParam();
  const LogDir logs;
  const auto begin = std::chrono::steady_clock::now();
  WorkerSet set(fault.expected == EndKind::silent ? kSilenceLimits : kPatientLimits);
  set.start(specs(logs, 3, fault.kind, faulty_rank, fault.moment));
  const std::vector<RankExit> exits = set.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kDeadline);
  ASSERT_EQ(exits.size(), 3u);
  const RankExit* cause = root_cause(exits);
  ASSERT_NE(cause, nullptr);
  EXPECT_EQ(cause->rank, faulty_rank);
  EXPECT_EQ(cause->kind, fault.expected) << end_kind_name(cause->kind);
  const std::string text = describe_failure(*cause, 3);
  EXPECT_NE(text.find("rank " + std::to_string(faulty_rank) + " of 3"), std::string::npos) << text;
  EXPECT_NE(text.find("about to " + std::string(fault.kind)), std::string::npos) << text;
  const bool told_a_phase = std::string(fault.moment) != "start";
  EXPECT_EQ(text.find("'backward'") != std::string::npos, told_a_phase) << text;
  EXPECT_TRUE(no_child_left());
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, FaultMatrix,
    testing::Combine(testing::Values(0, 2),
                     testing::Values(FaultCase{"crash", "start", EndKind::signalled},
                                     FaultCase{"crash", "backward", EndKind::signalled},
                                     FaultCase{"crash", "end", EndKind::signalled},
                                     FaultCase{"abort", "backward", EndKind::signalled},
                                     FaultCase{"killed", "backward", EndKind::signalled},
                                     FaultCase{"exit", "start", EndKind::failed},
                                     FaultCase{"exit", "end", EndKind::failed},
                                     FaultCase{"error", "backward", EndKind::failed},
                                     FaultCase{"missing", "start", EndKind::incomplete},
                                     FaultCase{"missing", "backward", EndKind::incomplete},
                                     FaultCase{"garbage", "backward", EndKind::incomplete},
                                     FaultCase{"endless-garbage", "backward", EndKind::silent},
                                     FaultCase{"grandchild", "backward", EndKind::failed},
                                     FaultCase{"hang", "start", EndKind::silent},
                                     FaultCase{"hang", "backward", EndKind::silent},
                                     FaultCase{"deaf", "backward", EndKind::silent})),
    [](const auto& info) {
      std::string name = "rank" + std::to_string(std::get<0>(info.param)) + "_" +
                         std::get<1>(info.param).kind + "_" + std::get<1>(info.param).moment;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// All messages are read at once, in the order of ranks, as after a while without the processor.
TEST(WorkerSet, TheRankThatFellSilentFirstIsFoundAfterwards) {
  const LogDir logs;
  WorkerSet set(kSilenceLimits);
  set.start(specs(logs, 3, "hang", 2, "backward"));
  for (const int peer : {0, 1}) logs.wait_for(peer, "waiting");
  const auto exits = set.wait();
  const RankExit* cause = root_cause(exits);
  ASSERT_NE(cause, nullptr);
  EXPECT_EQ(cause->rank, 2);
  EXPECT_EQ(cause->kind, EndKind::silent);
}

TEST(WorkerSet, OddButHealthyWorkersGetThrough) {
  for (const char* kind : {"none", "huge", "slow"}) {
    const LogDir logs;
    WorkerSet set(kPatientLimits);
    set.start(specs(logs, 2, kind, 1, "backward"));
    int reports = 0;
    const auto exits = set.wait([&](int, int, const RankReport&) { ++reports; });
    EXPECT_EQ(root_cause(exits), nullptr) << kind;
    EXPECT_EQ(reports, 2) << kind;
    EXPECT_EQ(exits[1].unreadable_lines, std::string(kind) == "huge" ? 1 : 0) << kind;
  }
}

TEST(WorkerSet, ARankThatIsAliveForEverBreaksTheJobLimit) {
  const LogDir logs;
  WorkerSet set(kJobLimits);
  set.start(specs(logs, 2, "dawdle", 1, "backward"));
  const auto exits = set.wait();
  const RankExit* cause = root_cause(exits);
  ASSERT_NE(cause, nullptr);
  EXPECT_EQ(cause->kind, EndKind::over_time);
  EXPECT_TRUE(no_child_left());
}

TEST(WorkerSet, AMissingProgramIsToldAsSuch) {
  const LogDir logs;
  auto list = specs(logs, 2, "none", 0, "start");
  list[1].process.argv = {"/no/such/program"};
  WorkerSet set(kPatientLimits);
  set.start(list);
  const auto exits = set.wait();
  const RankExit* cause = root_cause(exits);
  ASSERT_NE(cause, nullptr);
  EXPECT_EQ(cause->rank, 1);
  EXPECT_NE(describe_failure(*cause, 2).find("/no/such/program"), std::string::npos);
}

TEST(WorkerSet, SpecsAreCheckedBeforeAnythingStarts) {
  const LogDir logs;
  auto twice = specs(logs, 2, "none", 0, "start");
  twice[1].rank = 0;
  EXPECT_THROW(WorkerSet(kPatientLimits).start(twice), UsageError);
  auto no_logs = specs(logs, 1, "none", 0, "start");
  no_logs[0].process.log_dir = "/no/such/directory";
  EXPECT_THROW(WorkerSet(kPatientLimits).start(no_logs), UsageError);
  EXPECT_TRUE(no_child_left());
}

TEST(WorkerSet, AnInterruptEndsEveryRank) {
  const LogDir logs;
  const Interrupt interrupt;
  const auto begin = std::chrono::steady_clock::now();
  WorkerSet set({60s, 60s, 60s, 200ms}, &interrupt);
  set.start(specs(logs, 2, "deaf", 0, "backward"));
  std::thread user([&logs] {
    logs.wait_for(0, "about to deaf");
    ::kill(::getpid(), SIGINT);
  });
  const auto exits = set.wait();
  user.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kDeadline);
  for (const RankExit& exit : exits) EXPECT_EQ(exit.kind, EndKind::interrupted);
  EXPECT_EQ(root_cause(exits), nullptr);
  EXPECT_TRUE(no_child_left());
}

TEST(WorkerSet, DestructionLeavesNothingBehind) {
  const LogDir logs;
  {
    WorkerSet set(kPatientLimits);
    set.start(specs(logs, 2, "deaf", 0, "start"));
  }
  EXPECT_TRUE(no_child_left());
}

// Gone, or a zombie that only its new parent can remove.
bool has_ended(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number;
  std::string name;
  char state = 'Z';
  stat >> number >> name >> state;
  return state == 'Z' || state == 'X';
}

TEST(WorkerSet, AKilledParentLeavesNothingBehind) {
  const LogDir logs;
  const auto list = specs(logs, 1, "deaf", 0, "start");
  const pid_t parent = ::fork();
  if (parent == 0) {
    WorkerSet set({60s, 60s, 60s, 60s});
    set.start(list);
    (void)set.wait();
    ::_exit(0);
  }
  logs.wait_for(0, "about to deaf");
  const pid_t worker = std::stoi(logs.text(0).substr(std::string("pid ").size()));
  EXPECT_FALSE(has_ended(worker));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  while (!has_ended(worker)) std::this_thread::sleep_for(5ms);  // or for the test's time limit
}

// Descriptors of the parent that are not marked close-on-exec must not reach a worker either.
TEST(WorkerSet, WorkersInheritNothingButTheirPipe) {
  const LogDir logs;
  const int stray = ::open("/dev/null", O_RDONLY);
  auto list = specs(logs, 1, "none", 0, "start");
  list[0].process.argv = {"/bin/ls", "-1", "/proc/self/fd"};
  WorkerSet set(kPatientLimits);
  set.start(list);
  (void)set.wait();
  ::close(stray);
  std::ifstream listing(logs.rank(0) / "stdout.log");
  int lines = 0;
  for (std::string line; std::getline(listing, line);) ++lines;
  EXPECT_EQ(lines, 5);  // 0, 1, 2, the pipe, and the directory that ls itself has open
}

}  // namespace
}  // namespace bench
