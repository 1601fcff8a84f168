#include "bench/cli/worker_lookup.hpp"

#include "bench/core/error.hpp"

#include <unistd.h>

#include <cstdlib>

namespace bench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "bench-worker";

fs::path this_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

WorkerProgram given_worker(const std::string& given, const char* origin) {
  if (given == "mock") return {this_program(), {"worker"}};
  if (is_program(given)) return {fs::absolute(given), {}};
  throw MachineError(std::string(origin) + ": '" + given + "' is not an executable program");
}

}  // namespace

WorkerProgram find_worker(const std::string& given) {
  if (!given.empty()) return given_worker(given, "--worker");
  const char* variable = std::getenv("BENCH_WORKER");
  if (variable != nullptr && *variable != '\0') return given_worker(variable, "BENCH_WORKER");

  const fs::path folder = this_program().parent_path();
  const fs::path places[] = {folder / kProgram, folder.parent_path() / "libexec" / kProgram};
  std::string looked_at;
  for (const fs::path& place : places) {
    if (is_program(place)) return {place, {}};
    looked_at += (looked_at.empty() ? "" : ", ") + place.string();
  }
  throw MachineError("the worker program was not found (looked for " + looked_at +
                     "); build it with BENCH_TORCH=ON, or name one in BENCH_WORKER");
}

}  // namespace bench::cli
