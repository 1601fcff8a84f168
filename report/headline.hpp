// Which cases of a run belong side by side, and which comparison matters most.
#pragma once

#include "bench/core/case_result.hpp"
#include "bench/core/strategy.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench::report {

// Finished cases of equal model, GPU count, batch and tags, side by side; null where there is none.
struct Comparison {
  std::string model;
  int gpus = 1;
  std::int64_t batch = 0;
  std::string tags;                           // "bucket_mb:25"; empty without
  const CaseResult* single = nullptr;         // one GPU, the same global batch
  const CaseResult* data_parallel = nullptr;  // Python's semantics
  const CaseResult* libtorch_data_parallel = nullptr;
  const CaseResult* distributed = nullptr;

  // data_parallel, else libtorch_data_parallel, else null.
  const CaseResult* any_data_parallel() const;
};

// In order of model (as run), GPU count, batch. Pointers are into `run`.
std::vector<Comparison> comparisons(const RunResult& run);
// DP beside DDP on the most GPUs, of the model listed last, at the largest batch where both
// finished. The same within one model where `only_model` names one.
std::optional<Comparison> headline(const RunResult& run, const std::string& only_model = {});

// The largest finished batch of a strategy, and whether a larger one did not fit.
struct LargestBatch {
  Strategy strategy = Strategy::single;
  std::int64_t batch = 0;
  bool larger_did_not_fit = false;
};
std::vector<LargestBatch> largest_batches(const RunResult& run, const std::string& model, int gpus);

// Whether a case is the end of a search for the largest batch that fits.
bool is_search_result(const CaseResult& result);

// "single", "DP", "LibTorch DP", "DDP": for people; files keep strategy_name().
const char* strategy_title(Strategy strategy);
// "bucket_mb:25, accumulation:4"; empty without tags.
std::string tag_text(const Case& work);

}  // namespace bench::report
