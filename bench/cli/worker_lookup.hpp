// Where the worker program is: the one thing that `bench` needs beside itself to train.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace bench::cli {

struct WorkerProgram {
  std::filesystem::path path;
  std::vector<std::string> arguments;  // before the launcher's own
};

// Places in order: `given` (--worker), BENCH_WORKER, beside this executable, ../libexec. Given ones
// must exist. Throws MachineError that names the places. "mock" is this program's own mock worker.
WorkerProgram find_worker(const std::string& given);

}  // namespace bench::cli
