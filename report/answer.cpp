#include "report/answer.hpp"

#include "bench/core/metric_catalog.hpp"
#include "bench/core/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace bench::report {
namespace {

constexpr double kSameTime = 1.005;  // what two decimals of a factor would show as 1.00

std::string shown(MetricHint hint, double value) { return format_metric(hint, value); }

// Whether the run searched for the largest batch of `model`; of any model when empty.
bool has_search(const RunResult& run, const std::string& model) {
  return std::any_of(run.cases.begin(), run.cases.end(), [&](const CaseResult& r) {
    return is_search_result(r) && (model.empty() || r.work.model.name == model);
  });
}

// Each model whose largest batch was searched for, with the most GPUs it was searched on.
std::vector<std::pair<std::string, int>> searched_models(const RunResult& run) {
  std::vector<std::pair<std::string, int>> models;
  for (const CaseResult& r : run.cases) {
    if (!is_search_result(r)) continue;
    auto found = std::find_if(models.begin(), models.end(),
                              [&](const auto& m) { return m.first == r.work.model.name; });
    if (found == models.end()) {
      models.emplace_back(r.work.model.name, r.work.world_size());
    } else {
      found->second = std::max(found->second, r.work.world_size());
    }
  }
  return models;
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
  return fmt::format("The largest batch {}that fits ({}, {} GPU{}): {}.",
                     has_search(run, model) ? "" : "tried ", model, gpus, gpus == 1 ? "" : "s",
                     list);
}

// Without DP beside DDP: the fastest finished case against the slowest of equal model and GPUs.
std::vector<std::string> sweep_sentences(const RunResult& run) {
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
  std::size_t compared = 0;
  for (const CaseResult& result : run.cases) {
    const bool comparable = result.status == CaseStatus::done && !result.work.reference_only &&
                            result.work.model.name == best->work.model.name &&
                            result.work.world_size() == best->work.world_size();
    if (!comparable) continue;
    ++compared;
    if (result.metric("items_per_second") < worst->metric("items_per_second")) worst = &result;
  }
  const double factor = best->metric("items_per_second") / worst->metric("items_per_second");
  const std::string where =
      fmt::format("{} on {} GPU{}", best->work.model.name, best->work.world_size(),
                  best->work.world_size() == 1 ? "" : "s");
  if (compared > 1 && factor < kSameTime) {
    return {fmt::format("All {} cases of {} reach the same throughput: {} samples/s.", compared,
                        where, throughput_text(best->metric("items_per_second")))};
  }
  const auto title = [](const CaseResult& r) {
    const std::string tags = tag_text(r.work);
    return fmt::format("{}, batch {}{}", strategy_title(r.work.strategy), r.work.batch,
                       tags.empty() ? "" : ", " + tags);
  };
  std::vector<std::string> sentences{
      fmt::format("Fastest: {} ({}) with {} samples/s.", where, title(*best),
                  throughput_text(best->metric("items_per_second")))};
  if (worst != best) {
    sentences.push_back(fmt::format("That is {} the throughput of the slowest ({}).",
                                    shown(MetricHint::factor, factor), title(*worst)));
  }
  return sentences;
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
  if (factor < kSameTime) {
    return fmt::format("DDP and {} take the same time here ({}): {}.", dp_title, where, times);
  }
  return fmt::format("{} is {} faster than {} here ({}): {}.", ddp_wins ? "DDP" : dp_title,
                     shown(MetricHint::factor, factor), ddp_wins ? dp_title : "DDP", where, times);
}

std::vector<std::string> headline_sentences(const RunResult& run) {
  std::vector<std::string> sentences;
  const auto add = [&](std::string sentence) {
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  };
  if (has_search(run, {})) {
    for (const auto& [model, gpus] : searched_models(run)) add(batch_sentence(run, model, gpus));
  } else if (const auto best = headline(run)) {
    add(speed_sentence(*best));
    add(efficiency_sentence(*best));
    add(memory_sentence(*best->any_data_parallel()));
    add(batch_sentence(run, best->model, best->gpus));
  } else {
    for (std::string& sentence : sweep_sentences(run)) add(std::move(sentence));
  }
  if (sentences.empty()) sentences.push_back("No case finished; the reasons are listed below.");
  return sentences;
}

std::string error_band_sentence(const RunResult& run) {
  const CaseResult* widest = nullptr;
  for (const CaseResult& result : run.cases) {
    if (result.status != CaseStatus::done || !result.simulated || !(result.error_band > 0))
      continue;
    if (widest == nullptr || result.error_band > widest->error_band) widest = &result;
  }
  if (widest == nullptr) return {};
  const auto reason = widest->facts.find("error_band");
  return fmt::format("Simulated times may be off by up to {}{}.",
                     shown(MetricHint::ratio, widest->error_band),
                     reason == widest->facts.end() ? "" : ": " + reason->second);
}

std::string throughput_text(double rate) {
  return rate < 100 ? fmt::format("{:.3g}", rate) : fmt::format("{:.0f}", rate);
}

}  // namespace bench::report
