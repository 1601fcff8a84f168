// Runs trials of the pitfall laboratory: each mistake and its cure in real processes on virtual
// GPUs, all rules over what each run shows, and a verdict with a price.
#pragma once

#include "bench/core/case_result.hpp"
#include "scenarios/pitfalls/laboratory/laboratory.hpp"

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace bench {

struct LaboratoryRequest {
  std::vector<const pitfalls::Trial*> trials;
  std::uint64_t seed = 1;
  std::filesystem::path out;  // exists and is writable
  std::filesystem::path worker;
  std::vector<std::string> worker_arguments;  // before the launcher's own
};

struct LaboratoryOutcome {
  RunResult result;                         // one case per trial, as written to results.json
  std::vector<pitfalls::Finding> findings;  // of the broken runs, by the rules under trial
  int exit_code = 0;  // 0: all reproduced, detected and cured; 1: not all; 130: interrupted
};

// Throws MachineError when the worker is missing.
LaboratoryOutcome run_laboratory(const LaboratoryRequest& request, std::ostream& progress);

}  // namespace bench
