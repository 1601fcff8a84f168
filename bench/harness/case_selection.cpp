#include "bench/harness/case_selection.hpp"

#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"

#include <algorithm>

namespace bench {
namespace {

// The references that add_relative_metrics() looks for (bench/core/relative_metrics.cpp).
bool is_reference_of(const Case& reference, const Case& work) {
  return reference.strategy == Strategy::single && reference.model.name == work.model.name &&
         (reference.batch == work.batch || reference.batch == work.batch / work.world_size());
}

}  // namespace

CaseSelection select_cases(const Plan& plan, const std::string& filter) {
  const NameFilter selected(filter);
  CaseSelection selection;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const Case& work = plan.cases[i].work;
    if (!work.reference_only && selected.selects(work.name())) selection.shown.push_back(i);
  }
  if (selection.shown.empty() && !plan.cases.empty()) {
    throw UsageError("--benchmark_filter=" + filter + ": no case matches; the first is " +
                     plan.cases.front().work.name());
  }
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    if (std::find(selection.shown.begin(), selection.shown.end(), i) != selection.shown.end()) {
      continue;
    }
    const bool needed =
        std::any_of(selection.shown.begin(), selection.shown.end(), [&](std::size_t shown) {
          return is_reference_of(plan.cases[i].work, plan.cases[shown].work);
        });
    if (needed && !plan.cases[i].search) selection.references.push_back(i);
  }
  return selection;
}

}  // namespace bench
