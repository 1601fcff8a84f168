// A Plan is what a scenario file and the flags mean: the cases to run, in order, each either ready
// or skipped with its reason. Making a plan starts nothing and writes nothing.
#pragma once

#include "bench/core/case.hpp"
#include "bench/core/outcome.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench {

// Instead of running one batch, find the largest that fits: batches are multiples of `multiple`
// (the world size), from `lowest` to `highest`. The finished case carries the batch it found.
struct BatchSearch {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  std::int64_t multiple = 1;
};

struct PlannedCase {
  Case work;
  std::optional<Skip> skip;           // known before anything runs; kept in the results
  std::optional<BatchSearch> search;  // work.batch is search->lowest until the search has run
};

struct Plan {
  std::string scenario;            // first part of every case's name
  std::string description;         // one sentence: the question the scenario answers
  std::string machine;             // empty on real devices
  std::vector<std::string> notes;  // lines the user sees first, e.g. which machine is simulated
  std::vector<PlannedCase> cases;  // references before the cases that need their figures
};

}  // namespace bench
