// What `bench --scenario ...` hands to the harness once every flag has been checked.
#pragma once

#include "bench/plan/plan.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct RunRequest {
  Plan plan;
  std::filesystem::path out;                  // exists and is writable
  bool resume = false;                        // `out` holds an earlier run; its finished cases stay
  std::filesystem::path worker;               // program started once per rank
  std::vector<std::string> worker_arguments;  // before the launcher's own, e.g. {"worker"}
  std::chrono::milliseconds case_time_out{600'000};
  std::optional<double> measured_single_ms;  // calibrate the simulator to this single-GPU step
  std::vector<std::string> benchmark_flags;  // --benchmark_*, for Google Benchmark
};

}  // namespace bench
