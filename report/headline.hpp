// The answer before the tables: which comparison matters most in a run, and what it says in plain
// sentences. Sentences follow from the figures that are there, not from the scenario's name.
#pragma once

#include "bench/core/case_result.hpp"

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

// "DDP is 1.90x faster than DP here (resnet50, 4 GPUs, batch 256): ...". Needs DP and DDP.
std::string speed_sentence(const Comparison& comparison);
// One to four sentences; at least one, also when nothing finished.
std::vector<std::string> headline_sentences(const RunResult& run);

// "Simulated times may be off by up to 30 %: <why>."; empty when nothing says how far.
std::string error_band_sentence(const RunResult& run);

// "single", "DP", "LibTorch DP", "DDP": for people; files keep strategy_name().
const char* strategy_title(Strategy strategy);
// "bucket_mb:25, accumulation:4"; empty without tags.
std::string tag_text(const Case& work);

}  // namespace bench::report
