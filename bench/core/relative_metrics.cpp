#include "bench/core/relative_metrics.hpp"

#include "bench/core/strategy.hpp"

#include <cmath>

namespace bench {
namespace {

bool same_work(const Case& a, const Case& b) {
  return a.model.name == b.model.name && a.model.file == b.model.file &&
         a.model.input_shape == b.model.input_shape && a.optimizer.name == b.optimizer.name &&
         a.data == b.data && a.device == b.device && a.machine == b.machine && a.host == b.host;
}

// The finished single-device case with `batch` samples per step; an equal accumulation is preferred
// because it launches the same kernels.
const CaseResult* find_single(const std::vector<CaseResult>& cases, const Case& work,
                              std::int64_t batch) {
  const CaseResult* found = nullptr;
  for (const CaseResult& result : cases) {
    if (result.status != CaseStatus::done || result.work.strategy != Strategy::single) continue;
    if (result.work.batch != batch || !same_work(result.work, work)) continue;
    if (found == nullptr || result.work.accumulation == work.accumulation) found = &result;
  }
  return found;
}

double throughput(const CaseResult* result) {
  return result == nullptr ? std::nan("") : result->metric("items_per_second");
}

void add_to(CaseResult& result, const std::vector<CaseResult>& cases) {
  const double gpus = result.work.world_size();
  const double own = throughput(&result);
  const double per_gpu_reference =
      throughput(find_single(cases, result.work, result.work.batch / result.work.world_size()));
  const double same_batch_reference =
      throughput(find_single(cases, result.work, result.work.batch));
  const double speedup_reference =
      same_batch_reference > 0 ? same_batch_reference : per_gpu_reference;
  if (per_gpu_reference > 0) {
    result.metrics["scaling_efficiency"] = own / (gpus * per_gpu_reference);
  }
  if (speedup_reference > 0) result.metrics["speedup_vs_single"] = own / speedup_reference;
}

}  // namespace

void add_relative_metrics(std::vector<CaseResult>& cases) {
  for (CaseResult& result : cases) {
    if (result.status == CaseStatus::done && throughput(&result) > 0) add_to(result, cases);
  }
}

}  // namespace bench
