// Throughput of a model over what its run varies: GPU counts, batches, the scenario's own axis.
#include "bench/core/strategy.hpp"
#include "report/charts/focus.hpp"
#include "report/charts/line_chart.hpp"
#include "report/charts/run_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace bench::report {
namespace {

template <class Key>
using Lines = std::map<Strategy, std::map<Key, double>>;  // samples per second

std::string format_rate(double rate) {
  if (rate >= 1e4) return fmt::format("{:g}k", std::round(rate / 100) / 10);
  return rate < 10 ? fmt::format("{:.2g}", rate) : fmt::format("{:.0f}", rate);
}

const char* strategy_class(Strategy strategy) {
  constexpr const char* kClasses[] = {"s-single", "s-dp", "s-libtorch", "s-ddp"};
  return kClasses[static_cast<int>(strategy)];
}

// One line per strategy over `key_of`, from the cases that `accept` lets in.
template <class Key, class KeyOf, class Accept>
Lines<Key> throughput_by(const std::vector<const CaseResult*>& cases, KeyOf key_of, Accept accept) {
  Lines<Key> lines;
  for (const CaseResult* r : cases) {
    const double rate = r->metric("items_per_second");
    if (rate > 0 && accept(r->work)) lines[r->work.strategy][key_of(r->work)] = rate;
  }
  return lines;
}

template <class Key>
std::set<Key> keys_of(const Lines<Key>& lines) {
  std::set<Key> keys;
  for (const auto& [strategy, values] : lines) {
    for (const auto& [key, value] : values) keys.insert(key);
  }
  return keys;
}

template <class Key>
LineChart line_chart(const Lines<Key>& lines) {
  LineChart chart;
  chart.format = format_rate;
  const std::set<Key> keys = keys_of(lines);
  for (const Key& key : keys) chart.x.push_back(fmt::format("{}", key));
  for (const auto& [strategy, values] : lines) {
    LineSeries series{strategy_title(strategy), strategy_class(strategy), {}};
    for (const Key& key : keys) {
      const auto found = values.find(key);
      series.values.push_back(found == values.end() ? std::nullopt
                                                    : std::optional<double>(found->second));
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

// Over GPU counts at one batch (global, or of each GPU), with perfect scaling as a dashed line.
std::optional<Chart> gpu_chart(const RunResult& run, const Focus& focus) {
  const auto lines = throughput_by<int>(
      chart_cases(run, focus.at.model), [](const Case& work) { return work.world_size(); },
      [&](const Case& work) {
        const bool tags_match =
            work.strategy == Strategy::single || tag_text(work) == focus.at.tags;
        return focus.same_batch(work) && tags_match;
      });
  const std::set<int> counts = keys_of(lines);
  if (counts.size() < 2) return std::nullopt;
  LineChart chart = line_chart(lines);
  const auto single = lines.find(Strategy::single);
  if (single != lines.end() && single->second.count(1) > 0) {
    LineSeries ideal{"perfect", "s-ideal dashed", {}};
    for (const int gpus : counts) ideal.values.emplace_back(single->second.at(1) * gpus);
    chart.series.push_back(std::move(ideal));
  }
  chart.x_title = "GPUs";
  chart.label =
      fmt::format("Throughput of {} over GPU counts at {}", focus.at.model, focus.batch_text());
  return Chart{"Throughput over GPUs", "samples/s at " + focus.batch_text(), draw(chart), false};
}

std::optional<Chart> batch_chart(const RunResult& run, const Focus& focus) {
  const auto lines = throughput_by<std::int64_t>(
      chart_cases(run, focus.at.model), [](const Case& work) { return work.batch; },
      [&](const Case& work) {
        const bool gpus_match = work.strategy == Strategy::single
                                    ? work.world_size() == 1 && !work.reference_only
                                    : work.world_size() == focus.at.gpus;
        return gpus_match && tag_text(work) == focus.at.tags;
      });
  LineChart chart = line_chart(lines);
  if (chart.x.size() < 2) return std::nullopt;
  chart.x_title = "global batch";
  chart.label =
      fmt::format("Throughput of {} over batches on {}", focus.at.model, focus.gpus_text());
  const bool has_single = lines.count(Strategy::single) > 0 && focus.at.gpus > 1;
  return Chart{
      "Throughput over batch sizes",
      fmt::format("samples/s on {}{}", focus.gpus_text(), has_single ? "; single on one" : ""),
      draw(chart), false};
}

// Values of the scenario's own axis, the first tag, in the order of the plan.
std::vector<std::string> tag_values(const std::vector<const CaseResult*>& cases) {
  std::vector<std::string> values;
  for (const CaseResult* r : cases) {
    if (r->work.tags.empty()) continue;
    const std::string& value = r->work.tags.front().second;
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

// A further tag (accumulation with and without no_sync) would need a line of its own per value.
bool only_first_tag_varies(const std::vector<const CaseResult*>& cases) {
  return std::all_of(cases.begin(), cases.end(),
                     [](const CaseResult* r) { return r->work.tags.size() <= 1; });
}

std::optional<Chart> tag_chart(const RunResult& run, const Focus& focus) {
  const auto cases = chart_cases(run, focus.at.model);
  const std::vector<std::string> values = tag_values(cases);
  if (values.size() < 2 || !only_first_tag_varies(cases)) return std::nullopt;
  const auto lines = throughput_by<std::ptrdiff_t>(
      cases,
      [&](const Case& work) {
        return std::find(values.begin(), values.end(), work.tags.front().second) - values.begin();
      },
      [&](const Case& work) { return !work.tags.empty() && work.world_size() == focus.at.gpus; });
  LineChart chart = line_chart(lines);
  std::size_t i = 0;
  std::string key;
  for (const std::ptrdiff_t value : keys_of(lines)) {
    chart.x[i++] = values[static_cast<std::size_t>(value)];
  }
  for (const CaseResult* r : cases) {
    if (!r->work.tags.empty()) key = r->work.tags.front().first;
  }
  if (chart.x.size() < 2) return std::nullopt;
  chart.x_title = key;
  chart.label = fmt::format("Throughput of {} over {}", focus.at.model, key);
  return Chart{"Throughput over " + key, "samples/s on " + focus.gpus_text(), draw(chart), false};
}

}  // namespace

std::vector<Chart> throughput_charts(const RunResult& run, const std::string& model) {
  const Focus focus = focus_of(run, model);
  std::vector<Chart> charts;
  for (auto chart : {gpu_chart(run, focus), batch_chart(run, focus), tag_chart(run, focus)}) {
    if (chart) charts.push_back(std::move(*chart));
  }
  return charts;
}

}  // namespace bench::report
