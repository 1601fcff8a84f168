// The laboratory's table: which mistakes are made for real, on how many virtual GPUs, and what each
// run shows and costs. The runs themselves are in training/pitfalls; this side does not see
// LibTorch.
#pragma once

#include "scenarios/pitfalls/laboratory/run_evidence.hpp"

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

// What the broken run did, next to the cured one. Independent of the rule that is to find it.
struct Price {
  bool reproduced = false;  // the broken run shows the effect
  bool gone = false;        // the cured run does not
  double cost = std::numeric_limits<double>::quiet_NaN();
  std::string unit;  // "samples never seen", "accuracy points", "s until the time-out"
  std::string seen;  // what a user sees: the error's own words, or what is silently wrong
};

enum class Processes : std::uint8_t { one, one_per_gpu };

// shared: runs one after the other in the same worker processes. own: may hang or end them.
enum class Isolation : std::uint8_t { shared, own };

struct Trial {
  std::string_view rule;  // its name
  std::string_view form;  // where a rule has several mistakes; else empty
  int gpus;
  Processes processes;
  Isolation isolation;
  std::string_view mistake;  // one line for the table
  std::string_view fix;
  Price (*price)(const RunEvidence& broken, const RunEvidence& cured);
};

// "missing-set-epoch", "batch-not-divisible-by-gpus/form:nine-on-eight"
std::string title_of(const Trial& trial);

// In the order of the result table.
std::span<const Trial> all_trials();

// Trials of these rules (ids or names, all forms); all where `names` is empty. Throws UsageError
// with the nearest names for one that no trial has.
std::vector<const Trial*> select_trials(const std::vector<std::string>& names);

}  // namespace bench::pitfalls
