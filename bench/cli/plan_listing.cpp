#include "bench/cli/plan_listing.hpp"

#include <algorithm>

namespace bench::cli {
namespace {

std::string remark(const PlannedCase& planned) {
  if (planned.skip) return "  skip: " + planned.skip->reason;
  if (planned.search) {
    return "  search: batches " + std::to_string(planned.search->lowest) + " to " +
           std::to_string(planned.search->highest);
  }
  return planned.work.reference_only ? "  reference" : "";
}

}  // namespace

std::string plan_listing(const Plan& plan) {
  std::string text;
  const bool said = !plan.notes.empty() && plan.notes[0].starts_with("simulated");
  if (!plan.machine.empty() && !said) text += "simulated on " + plan.machine + "\n";
  for (const std::string& note : plan.notes) text += note + "\n";
  std::size_t skips = 0;
  for (const PlannedCase& planned : plan.cases) {
    text += planned.work.name() + remark(planned) + "\n";
    skips += planned.skip ? 1 : 0;
  }
  return text + std::to_string(plan.cases.size() - skips) + " cases, " + std::to_string(skips) +
         " skips\n";
}

}  // namespace bench::cli
