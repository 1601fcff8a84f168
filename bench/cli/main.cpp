// bench: the one place where arguments come in and exit codes go out. Whatever goes wrong arrives
// here as an exception, is printed once to standard error and becomes an exit code (INTERFACE).
#include "bench/cli/dispatch.hpp"
#include "bench/core/error.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

namespace {

// What the command has printed is its result: where that cannot be written (a full disk), the
// command has failed, whatever it found.
int with_output_written(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "bench: error: standard output cannot be written: %s\n",
               std::strerror(errno));
  return bench::kExitMachine;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return with_output_written(bench::cli::dispatch({argv + 1, argv + argc}));
  } catch (const bench::Error& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "bench: error: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "bench: internal error: %s\n", error.what());
    return bench::kExitMachine;
  }
}
