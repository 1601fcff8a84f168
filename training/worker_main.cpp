// bench-worker: runs the jobs of one file in one process, as one rank. It is started by bench, by
// torchrun or another launcher that sets the ranks' environment, or by hand.
#include "bench/core/error.hpp"
#include "bench/launch/worker_protocol.hpp"

#include "training/devices/process_memory.hpp"
#include "training/jobs/job_runner.hpp"

#include <malloc.h>

#include <cstdio>
#include <exception>

namespace {

// True when every job was reported without leaving peers behind in a collective.
bool run_all(const std::vector<bench::Job>& jobs, bench::training::JobContext& context) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    context.begin_job(static_cast<int>(i));
    const auto report = bench::training::run_job(jobs[i], context);
    context.channel().report(report);
    ::malloc_trim(0);  // the next job may be small and last long
    const bool failed = report.status == bench::RankStatus::error ||
                        report.status == bench::RankStatus::out_of_memory;
    if (failed && context.ranks().world_size > 1) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    bench::die_with_parent();
    bench::training::set_up_process_memory();
    const auto jobs = bench::read_job_file(bench::job_file_argument(argc, argv));
    const auto channel = bench::WorkerChannel::from_environment();
    bench::training::JobContext context(bench::rank_context_from_environment(), *channel, jobs);
    return run_all(jobs, context) ? bench::kExitClean : bench::kExitFindings;
  } catch (const bench::Error& error) {
    std::fprintf(stderr, "bench-worker: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-worker: %s\n", error.what());
    return bench::kExitMachine;
  }
}
