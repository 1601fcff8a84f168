#include "report/headline.hpp"

#include "bench/core/strategy.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace bench::report {
namespace {

void place(Comparison& comparison, const CaseResult& result) {
  switch (result.work.strategy) {
    case Strategy::single:
      comparison.single = &result;
      break;
    case Strategy::data_parallel:
      comparison.data_parallel = &result;
      break;
    case Strategy::libtorch_data_parallel:
      comparison.libtorch_data_parallel = &result;
      break;
    case Strategy::distributed:
      comparison.distributed = &result;
      break;
  }
}

const CaseResult* finished_single(const RunResult& run, const Comparison& comparison) {
  const CaseResult* found = nullptr;
  for (const CaseResult& result : run.cases) {
    const Case& work = result.work;
    if (result.status == CaseStatus::done && work.strategy == Strategy::single &&
        work.model.name == comparison.model && work.batch == comparison.batch &&
        (found == nullptr || tag_text(work) == comparison.tags)) {
      found = &result;
    }
  }
  return found;
}

// The facts that the search for the largest batch leaves (bench/harness/max_batch.cpp).
constexpr const char* kNextBatchFact = "next_batch";

bool next_batch_failed(const CaseResult& result) {
  return result.facts.at(kNextBatchFact).find("does not fit") != std::string::npos;
}

}  // namespace

bool is_search_result(const CaseResult& result) { return result.facts.contains(kNextBatchFact); }

const CaseResult* Comparison::any_data_parallel() const {
  return data_parallel != nullptr ? data_parallel : libtorch_data_parallel;
}

const char* strategy_title(Strategy strategy) {
  constexpr const char* kTitles[] = {"single", "DP", "LibTorch DP", "DDP"};
  return kTitles[static_cast<int>(strategy)];
}

std::string tag_text(const Case& work) {
  std::string text;
  for (const auto& [key, value] : work.tags) {
    text += (text.empty() ? "" : ", ") + key + ":" + value;
  }
  return text;
}

std::vector<Comparison> comparisons(const RunResult& run) {
  std::vector<std::string> models;
  for (const CaseResult& result : run.cases) {
    if (std::find(models.begin(), models.end(), result.work.model.name) == models.end()) {
      models.push_back(result.work.model.name);
    }
  }
  std::map<std::tuple<std::size_t, int, std::int64_t, std::string>, Comparison> sorted;
  for (const CaseResult& result : run.cases) {
    const Case& work = result.work;
    if (result.status != CaseStatus::done || work.reference_only) continue;
    const auto model = std::find(models.begin(), models.end(), work.model.name) - models.begin();
    Comparison& comparison =
        sorted[{static_cast<std::size_t>(model), work.world_size(), work.batch, tag_text(work)}];
    comparison.model = work.model.name;
    comparison.gpus = work.world_size();
    comparison.batch = work.batch;
    comparison.tags = tag_text(work);
    place(comparison, result);
  }
  std::vector<Comparison> all;
  for (auto& [key, comparison] : sorted) {
    if (comparison.single == nullptr) comparison.single = finished_single(run, comparison);
    all.push_back(comparison);
  }
  return all;
}

std::optional<Comparison> headline(const RunResult& run, const std::string& only_model) {
  std::optional<Comparison> best;
  for (const Comparison& c : comparisons(run)) {
    if (!only_model.empty() && c.model != only_model) continue;
    if (c.any_data_parallel() == nullptr || c.distributed == nullptr || c.gpus < 2) continue;
    // Comparisons come by model, GPUs, batch: of equal GPU counts the last one wins.
    if (!best || c.gpus >= best->gpus) best = c;
  }
  return best;
}

std::vector<LargestBatch> largest_batches(const RunResult& run, const std::string& model,
                                          int gpus) {
  std::map<Strategy, LargestBatch> by_strategy;
  std::map<Strategy, std::int64_t> smallest_failed;
  for (const CaseResult& result : run.cases) {
    const Case& work = result.work;
    const int wanted = work.strategy == Strategy::single ? 1 : gpus;
    if (work.model.name != model || work.world_size() != wanted || work.reference_only) continue;
    if (result.status == CaseStatus::done) {
      LargestBatch& largest = by_strategy[work.strategy];
      largest.strategy = work.strategy;
      largest.batch = std::max(largest.batch, work.batch);
      // A search for the largest batch says of the next one whether it failed to fit.
      if (is_search_result(result) && next_batch_failed(result)) largest.larger_did_not_fit = true;
    } else if (result.out_of_memory) {
      auto [at, is_new] = smallest_failed.try_emplace(work.strategy, work.batch);
      at->second = std::min(at->second, work.batch);
    }
  }
  std::vector<LargestBatch> all;
  for (auto& [strategy, largest] : by_strategy) {
    const auto failed = smallest_failed.find(strategy);
    if (failed != smallest_failed.end() && failed->second > largest.batch) {
      largest.larger_did_not_fit = true;
    }
    all.push_back(largest);
  }
  return all;
}

}  // namespace bench::report
