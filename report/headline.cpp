#include "report/headline.hpp"

#include "bench/core/metric_catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace bench::report {
namespace {

std::string shown(MetricHint hint, double value) { return format_metric(hint, value); }

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

std::string memory_sentence(const CaseResult& dp) {
  const double imbalance = dp.metric("primary_imbalance");
  if (std::isnan(imbalance) || dp.memory.size() < 2) return {};
  double others = 0;
  for (std::size_t i = 1; i < dp.memory.size(); ++i) {
    others += static_cast<double>(dp.memory[i].peak_bytes);
  }
  others /= static_cast<double>(dp.memory.size() - 1);
  return fmt::format("{}'s GPU {} needs {} the memory of the others ({} against {}).",
                     strategy_title(dp.work.strategy), dp.memory[0].device,
                     shown(MetricHint::factor, imbalance),
                     shown(MetricHint::bytes, static_cast<double>(dp.memory[0].peak_bytes)),
                     shown(MetricHint::bytes, others));
}

std::string efficiency_sentence(const Comparison& c) {
  const double dp = c.any_data_parallel()->metric("scaling_efficiency");
  const double ddp = c.distributed->metric("scaling_efficiency");
  if (std::isnan(dp) || std::isnan(ddp)) return {};
  return fmt::format(
      "Against one GPU at the same batch per GPU, DDP scales with {} efficiency, {} "
      "with {}.",
      shown(MetricHint::ratio, ddp), strategy_title(c.any_data_parallel()->work.strategy),
      shown(MetricHint::ratio, dp));
}

std::string batch_sentence(const RunResult& run, const std::string& model, int gpus) {
  const auto largest = largest_batches(run, model, gpus);
  const bool any_limit = std::any_of(largest.begin(), largest.end(),
                                     [](const LargestBatch& l) { return l.larger_did_not_fit; });
  if (largest.empty()) return {};
  if (!any_limit) {
    std::int64_t most = 0;
    for (const LargestBatch& l : largest) most = std::max(most, l.batch);
    return fmt::format("Every batch tried fits, up to {} on {} GPU{} ({}).", most, gpus,
                       gpus == 1 ? "" : "s", model);
  }
  std::string list;
  for (const LargestBatch& l : largest) {
    const std::string where = l.strategy == Strategy::single
                                  ? "on one GPU"
                                  : fmt::format("under {}", strategy_title(l.strategy));
    list += fmt::format("{}{}{} {}", list.empty() ? "" : ", ",
                        l.larger_did_not_fit ? "" : "at least ", l.batch, where);
  }
  return fmt::format("The largest batch tried that fits ({}, {} GPU{}): {}.", model, gpus,
                     gpus == 1 ? "" : "s", list);
}

// Without DP beside DDP: the fastest finished case against the slowest of equal model and GPUs.
std::string sweep_sentence(const RunResult& run) {
  const CaseResult* best = nullptr;
  for (const CaseResult& result : run.cases) {
    if (result.status != CaseStatus::done || result.work.reference_only) continue;
    if (!(result.metric("items_per_second") > 0)) continue;
    if (best == nullptr || result.metric("items_per_second") > best->metric("items_per_second")) {
      best = &result;
    }
  }
  if (best == nullptr) return {};
  const CaseResult* worst = best;
  for (const CaseResult& result : run.cases) {
    const bool comparable = result.status == CaseStatus::done && !result.work.reference_only &&
                            result.work.model.name == best->work.model.name &&
                            result.work.world_size() == best->work.world_size();
    if (comparable && result.metric("items_per_second") < worst->metric("items_per_second")) {
      worst = &result;
    }
  }
  const auto title = [](const CaseResult& r) {
    const std::string tags = tag_text(r.work);
    return fmt::format("{}, batch {}{}", strategy_title(r.work.strategy), r.work.batch,
                       tags.empty() ? "" : ", " + tags);
  };
  std::string sentence =
      fmt::format("Fastest: {} on {} GPU{} ({}) with {}.", best->work.model.name,
                  best->work.world_size(), best->work.world_size() == 1 ? "" : "s", title(*best),
                  shown(MetricHint::rate, best->metric("items_per_second")));
  if (worst != best) {
    sentence += fmt::format(" That is {} the throughput of the slowest ({}).",
                            shown(MetricHint::factor, best->metric("items_per_second") /
                                                          worst->metric("items_per_second")),
                            title(*worst));
  }
  return sentence;
}

}  // namespace

std::string speed_sentence(const Comparison& c) {
  const CaseResult& dp = *c.any_data_parallel();
  const double dp_ms = dp.metric("step_ms_p50");
  const double ddp_ms = c.distributed->metric("step_ms_p50");
  const bool ddp_wins = ddp_ms <= dp_ms;
  const double factor = ddp_wins ? dp_ms / ddp_ms : ddp_ms / dp_ms;
  const char* dp_title = strategy_title(dp.work.strategy);
  const std::string where = fmt::format("{}, {} GPUs, batch {}", c.model, c.gpus, c.batch);
  const std::string times =
      fmt::format("{} against {} per step", shown(MetricHint::duration_ms, std::min(dp_ms, ddp_ms)),
                  shown(MetricHint::duration_ms, std::max(dp_ms, ddp_ms)));
  if (factor < 1.005) {
    return fmt::format("DDP and {} take the same time here ({}): {}.", dp_title, where, times);
  }
  return fmt::format("{} is {} faster than {} here ({}): {}.", ddp_wins ? "DDP" : dp_title,
                     shown(MetricHint::factor, factor), ddp_wins ? dp_title : "DDP", where, times);
}

const CaseResult* Comparison::any_data_parallel() const {
  return data_parallel != nullptr ? data_parallel : libtorch_data_parallel;
}

std::string error_band_sentence(const RunResult& run) {
  const CaseResult* widest = nullptr;
  for (const CaseResult& result : run.cases) {
    if (result.status != CaseStatus::done || !(result.error_band > 0)) continue;
    if (widest == nullptr || result.error_band > widest->error_band) widest = &result;
  }
  if (widest == nullptr) return {};
  const auto reason = widest->facts.find("error_band");
  return fmt::format("Simulated times may be off by up to {}{}.",
                     shown(MetricHint::ratio, widest->error_band),
                     reason == widest->facts.end() ? "" : ": " + reason->second);
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
      const auto next = result.facts.find("next_batch");
      const bool searched = next != result.facts.end();
      if (searched && next->second.find("does not fit") != std::string::npos) {
        largest.larger_did_not_fit = true;
      }
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

std::vector<std::string> headline_sentences(const RunResult& run) {
  std::vector<std::string> sentences;
  const auto add = [&](std::string sentence) {
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  };
  if (const auto best = headline(run)) {
    add(speed_sentence(*best));
    add(efficiency_sentence(*best));
    add(memory_sentence(*best->any_data_parallel()));
    add(batch_sentence(run, best->model, best->gpus));
  } else {
    add(sweep_sentence(run));
  }
  if (sentences.empty()) sentences.push_back("No case finished; the reasons are listed below.");
  return sentences;
}

}  // namespace bench::report
