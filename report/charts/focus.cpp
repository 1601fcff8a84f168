#include "report/charts/focus.hpp"

#include "bench/core/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace bench::report {
namespace {

// The headline's comparison, else the one on the most GPUs at the largest batch.
Comparison central_comparison(const RunResult& run, const std::string& model) {
  if (const auto best = headline(run, model)) return *best;
  Comparison central;
  for (const Comparison& c : comparisons(run)) {
    if (c.model == model && std::tie(c.gpus, c.batch) >= std::tie(central.gpus, central.batch)) {
      central = c;
    }
  }
  return central;
}

std::size_t gpu_counts(const RunResult& run, const Focus& focus) {
  std::set<int> counts;
  for (const CaseResult* r : chart_cases(run, focus.at.model)) {
    if (focus.same_batch(r->work)) counts.insert(r->work.world_size());
  }
  return counts.size();
}

}  // namespace

bool Focus::same_batch(const Case& work) const {
  return per_gpu ? work.batch * at.gpus == at.batch * work.world_size() : work.batch == at.batch;
}

std::string Focus::batch_text() const {
  return per_gpu ? fmt::format("batch {} per GPU", at.batch / std::max(1, at.gpus))
                 : fmt::format("global batch {}", at.batch);
}

std::string Focus::gpus_text() const {
  return fmt::format("{} GPU{}", at.gpus, at.gpus == 1 ? "" : "s");
}

Focus focus_of(const RunResult& run, const std::string& model) {
  Focus strong{central_comparison(run, model)};
  Focus weak = strong;
  weak.per_gpu = true;
  // A sweep over GPU counts at one global batch also holds some pairs of equal batch per GPU.
  const bool strong_sweep = gpu_counts(run, strong) > 1;
  return !strong_sweep && gpu_counts(run, weak) > 1 ? weak : strong;
}

std::vector<const CaseResult*> chart_cases(const RunResult& run, const std::string& model) {
  std::vector<const CaseResult*> cases;
  for (const CaseResult& r : run.cases) {
    const bool counts = !r.work.reference_only || r.work.strategy == Strategy::single;
    if (r.status == CaseStatus::done && counts && r.work.model.name == model) cases.push_back(&r);
  }
  return cases;
}

}  // namespace bench::report
