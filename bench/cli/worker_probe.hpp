// Asks the worker program what it was built with and what it sees: versions, devices, libraries.
#pragma once

#include "bench/cli/worker_lookup.hpp"
#include "bench/core/job.hpp"

namespace bench::cli {

// Starts one worker for a probe job. Throws MachineError when it does not answer.
RankReport probe_worker(const WorkerProgram& program);

}  // namespace bench::cli
