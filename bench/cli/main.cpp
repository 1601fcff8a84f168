// bench: the one place where arguments come in and exit codes go out. Whatever goes wrong arrives
// here as an exception, is printed once to standard error and becomes an exit code (INTERFACE).
#include "bench/cli/dispatch.hpp"
#include "bench/core/error.hpp"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  try {
    return bench::cli::dispatch({argv + 1, argv + argc});
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
