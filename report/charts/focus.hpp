// What the charts of one model hold fixed: the comparison they zoom in on, and whether its cases
// share the global batch (strong scaling) or the batch of each GPU (weak scaling).
#pragma once

#include "bench/core/case_result.hpp"
#include "report/headline.hpp"

#include <string>
#include <vector>

namespace bench::report {

struct Focus {
  Comparison at;
  bool per_gpu = false;  // the sweep keeps the batch of each GPU

  bool same_batch(const Case& work) const;
  std::string batch_text() const;  // "global batch 256", "batch 32 per GPU"
  std::string gpus_text() const;   // "4 GPUs"
};

Focus focus_of(const RunResult& run, const std::string& model);

// Finished cases of the model. Single-device references count, other references do not.
std::vector<const CaseResult*> chart_cases(const RunResult& run, const std::string& model);

}  // namespace bench::report
