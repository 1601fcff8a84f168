// A worker that fails on request: fault_worker KIND RANK MOMENT SIGN. The rank named fails in the
// way named at the moment named, and writes the file SIGN before; its peers behave as ranks in a
// collective do, they wait for it.
#include "bench/launch/worker_protocol.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;

struct Fault {
  std::string kind;
  std::string moment;
  std::string sign;
  bool mine = false;
};

[[noreturn]] void sleep_for_ever() {
  for (;;) std::this_thread::sleep_for(1h);
}

void write_raw(const std::string& text) {
  const int fd = std::atoi(std::getenv(bench::kReportFdVariable));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n <= 0) std::exit(9);
    done += static_cast<std::size_t>(n);
  }
}

// A process that survives its parent unless somebody ends the whole group.
void leave_a_grandchild() {
  if (::fork() == 0) {
    ::execl("/bin/sleep", "sleep", "987654", nullptr);
    ::_exit(127);
  }
  std::exit(4);
}

void fail_now(const Fault& fault, bench::WorkerChannel& channel, int rank) {
  const std::string& kind = fault.kind;
  std::fprintf(stderr, "pid %d\nfault_worker: about to %s\n", ::getpid(), kind.c_str());
  std::ofstream(fault.sign) << kind;
  if (kind == "crash") ::raise(SIGSEGV);
  if (kind == "abort") std::abort();
  if (kind == "exit") std::exit(3);
  if (kind == "killed") ::raise(SIGKILL);
  if (kind == "missing") std::exit(0);
  if (kind == "grandchild") leave_a_grandchild();
  if (kind == "error") {
    bench::RankReport report;
    report.rank = rank;
    report.status = bench::RankStatus::error;
    report.message = "deliberate error";
    channel.report(report);
    std::exit(1);
  }
  if (kind == "garbage") {
    write_raw("Segmentation fault\n{\"type\":\"report\"}\n\x01\x02\xff\n");
    std::exit(0);
  }
  if (kind == "endless-garbage") {
    for (;;) {
      write_raw("nonsense\n");
      std::this_thread::sleep_for(10ms);
    }
  }
  if (kind == "hang") sleep_for_ever();
  if (kind == "deaf") {
    ::signal(SIGTERM, SIG_IGN);
    sleep_for_ever();
  }
  if (kind == "dawdle") {  // alive for ever, done never
    for (;;) {
      channel.heartbeat();
      std::this_thread::sleep_for(20ms);
    }
  }
}

// Not failures: a worker that is merely talkative or slow must get through.
void behave_oddly(const std::string& kind, bench::WorkerChannel& channel) {
  if (kind == "huge") {
    std::printf("%s\n", std::string(5'000'000, 'x').c_str());
    write_raw(std::string(2'000'000, 'y') + "\n");
  }
  if (kind == "slow") {
    for (int i = 0; i < 10; ++i) {
      channel.heartbeat();
      std::this_thread::sleep_for(60ms);
    }
  }
}

bool fails(const Fault& fault) {
  return fault.kind != "none" && fault.kind != "huge" && fault.kind != "slow";
}

void wait_for_the_sign(const Fault& fault) {
  while (!std::filesystem::exists(fault.sign)) std::this_thread::sleep_for(1ms);
}

void wait_for_the_failed_rank(const Fault& fault, bench::WorkerChannel& channel) {
  std::fprintf(stderr, "fault_worker: waiting\n");
  if (fault.kind == "dawdle") {
    for (;;) {
      channel.heartbeat();
      std::this_thread::sleep_for(20ms);
    }
  }
  sleep_for_ever();
}

}  // namespace

int main(int argc, char** argv) {
  bench::die_with_parent();
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (argc < 5) return 64;
  const bench::RankContext context = bench::rank_context_from_environment();
  const Fault fault{argv[1], argv[3], argv[4], context.rank == std::atoi(argv[2])};
  auto channel = bench::WorkerChannel::from_environment();
  if (fault.mine && fault.moment == "start") fail_now(fault, *channel, context.rank);
  channel->begin_job(0);
  channel->phase("init");
  // The hanging rank must be the first to fall silent, as it is where peers wait for it.
  if (!fault.mine && fails(fault)) wait_for_the_sign(fault);
  channel->phase("backward");
  if (fault.mine && fault.moment == "backward") fail_now(fault, *channel, context.rank);
  if (fault.mine) behave_oddly(fault.kind, *channel);
  if (!fault.mine && fails(fault)) wait_for_the_failed_rank(fault, *channel);
  bench::RankReport report;
  report.rank = context.rank;
  channel->report(report);
  if (fault.mine && fault.moment == "end") fail_now(fault, *channel, context.rank);
  return 0;
}
