#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"

#include <algorithm>

namespace bench::pitfalls {
namespace {

constexpr double kSlower = 1.5;  // times the fastest rank's compute

// The slowest rank's compute time against the fastest's; 0 where that is not known.
double slowdown(const RunEvidence& run) {
  const std::vector<double> compute = rank_values(run, "compute_seconds");
  if (compute.size() < 2) return 0;
  const auto [least, most] = std::minmax_element(compute.begin(), compute.end());
  return *least > 0 ? *most / *least : 0;
}

std::string milliseconds_by_rank(const RunEvidence& run, std::string_view key) {
  std::string text;
  for (const double seconds : rank_values(run, key))
    text += (text.empty() ? "" : ", ") + figure(1e3 * seconds);
  return text;
}

}  // namespace

void judge_hidden_straggler(const RunEvidence& run, RunReport& report) {
  if (slowdown(run) < kSlower) return;
  const std::vector<double> compute = rank_values(run, "compute_seconds");
  const auto slowest = std::max_element(compute.begin(), compute.end()) - compute.begin();
  Finding& finding =
      report.add(Confidence::certain,
                 "rank " + std::to_string(slowest) + " computes " + figure(slowdown(run)) +
                     " times as long as the fastest rank before its first collective; "
                     "the others wait for it in the all-reduce");
  finding.help = "Look at that rank's clocks, neighbours and share of the data.";
  finding.evidence.emplace_back("compute ms by rank", milliseconds_by_rank(run, "compute_seconds"));
  finding.evidence.emplace_back("step ms by rank", milliseconds_by_rank(run, "wall_seconds"));
}

Price price_hidden_straggler(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  price.reproduced = slowdown(broken) >= kSlower;
  price.gone = slowdown(cured) > 0 && slowdown(cured) < kSlower;
  price.cost = 1e3 * (broken.number("wall_seconds") - cured.number("wall_seconds"));
  price.unit = "ms longer steps on every rank";
  price.seen = "silent: all ranks step in " + milliseconds_by_rank(broken, "wall_seconds") +
               " ms; computing takes them " + milliseconds_by_rank(broken, "compute_seconds") +
               " ms";
  return price;
}

}  // namespace bench::pitfalls
