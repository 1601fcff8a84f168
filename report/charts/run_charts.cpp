#include "report/charts/run_charts.hpp"

#include "bench/core/units.hpp"
#include "report/case_tables.hpp"
#include "report/charts/line_chart.hpp"
#include "report/charts/stacked_bars.hpp"
#include "report/headline.hpp"
#include "simulator/operation_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace bench::report {
namespace {

constexpr std::size_t kMaxMemoryRows = 8;  // GPUs drawn per case

std::string format_ms(double ms) {
  return ms == 0 ? "0" : format_duration_ns(std::llround(ms * 1e6));
}

std::string format_memory(double bytes) {
  return bytes == 0 ? "0" : format_bytes(static_cast<std::uint64_t>(bytes));
}

std::string format_rate(double rate) {
  if (rate >= 1e4) return fmt::format("{:g}k", std::round(rate / 100) / 10);
  return rate < 10 ? fmt::format("{:.2g}", rate) : fmt::format("{:.0f}", rate);
}

const char* strategy_class(Strategy strategy) {
  constexpr const char* kClasses[] = {"s-single", "s-dp", "s-libtorch", "s-ddp"};
  return kClasses[static_cast<int>(strategy)];
}

// Mean over the GPUs of a case.
DeviceBreakdown mean_breakdown(const CaseResult& result) {
  DeviceBreakdown mean;
  const auto n = static_cast<double>(result.breakdown.size());
  for (const DeviceBreakdown& b : result.breakdown) {
    mean.compute_ms += b.compute_ms / n;
    mean.exposed_communication_ms += b.exposed_communication_ms / n;
    mean.exposed_copy_ms += b.exposed_copy_ms / n;
    mean.host_ms += b.host_ms / n;
    mean.idle_ms += b.idle_ms / n;
  }
  return mean;
}

std::vector<const CaseResult*> present(const Comparison& c) {
  std::vector<const CaseResult*> cases;
  for (const CaseResult* r : {c.data_parallel, c.libtorch_data_parallel, c.distributed}) {
    if (r != nullptr) cases.push_back(r);
  }
  return cases;
}

std::string row_label(const CaseResult& result, bool with_tags) {
  const int gpus = result.work.world_size();
  std::string label =
      fmt::format("{}, {} GPU{}", strategy_title(result.work.strategy), gpus, gpus == 1 ? "" : "s");
  const std::string tags = tag_text(result.work);
  return with_tags && !tags.empty() ? tags : label;
}

// The comparison whose batch (and, in a sweep, GPU count) the model's charts hold fixed.
Comparison focus(const RunResult& run, const std::string& model) {
  if (const auto best = headline(run, model)) return *best;
  Comparison focus;
  for (const Comparison& c : comparisons(run)) {
    if (c.model == model && std::tie(c.gpus, c.batch) >= std::tie(focus.gpus, focus.batch)) {
      focus = c;
    }
  }
  return focus;
}

bool has_tags(const RunResult& run, const std::string& model) {
  return std::any_of(run.cases.begin(), run.cases.end(), [&](const CaseResult& r) {
    return r.work.model.name == model && !r.work.tags.empty();
  });
}

// Finished cases with the focus' batch (and GPUs where tags vary), each once, single first.
std::vector<const CaseResult*> step_rows(const RunResult& run, const std::string& model) {
  const Comparison fixed = focus(run, model);
  const bool tagged = has_tags(run, model);
  std::vector<const CaseResult*> rows;
  for (const Comparison& c : comparisons(run)) {
    if (c.model != model || c.batch != fixed.batch || (tagged && c.gpus != fixed.gpus)) continue;
    if (rows.empty() && fixed.single != nullptr) rows.push_back(fixed.single);
    for (const CaseResult* r : present(c)) rows.push_back(r);
  }
  if (rows.empty() && fixed.single != nullptr) rows.push_back(fixed.single);
  std::erase_if(rows, [](const CaseResult* r) { return r->breakdown.empty(); });
  return rows;
}

// One line per strategy over `x`, from the finished cases that `accept` lets in.
template <class Key, class XOf, class Accept>
std::map<Strategy, std::map<Key, double>> throughput_by(const RunResult& run, XOf x_of,
                                                        Accept accept) {
  std::map<Strategy, std::map<Key, double>> lines;
  for (const CaseResult& r : run.cases) {
    if (r.status != CaseStatus::done || r.work.reference_only || !accept(r.work)) continue;
    const double rate = r.metric("items_per_second");
    if (rate > 0) lines[r.work.strategy][x_of(r.work)] = rate;
  }
  return lines;
}

template <class Key>
LineChart line_chart(const std::map<Strategy, std::map<Key, double>>& lines) {
  LineChart chart;
  chart.format = format_rate;
  std::set<Key> keys;
  for (const auto& [strategy, values] : lines) {
    for (const auto& [key, value] : values) keys.insert(key);
  }
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

// Throughput over GPU counts at one global batch, with perfect scaling as a dashed line.
std::optional<Chart> gpu_chart(const RunResult& run, const std::string& model) {
  const Comparison fixed = focus(run, model);
  auto lines = throughput_by<int>(
      run, [](const Case& work) { return work.world_size(); },
      [&](const Case& work) {
        return work.model.name == model && work.batch == fixed.batch &&
               tag_text(work) == fixed.tags;
      });
  std::set<int> counts;
  for (const auto& [strategy, values] : lines) {
    for (const auto& [gpus, rate] : values) counts.insert(gpus);
  }
  if (counts.size() < 2) return std::nullopt;
  LineChart chart = line_chart(lines);
  const auto single = lines.find(Strategy::single);
  if (single != lines.end() && single->second.count(1) > 0) {
    LineSeries ideal{"perfect", "s-ideal dashed", {}};
    for (const int gpus : counts) ideal.values.emplace_back(single->second.at(1) * gpus);
    chart.series.push_back(std::move(ideal));
  }
  chart.x_title = "GPUs";
  chart.label = fmt::format("Throughput of {} over GPU counts at batch {}", model, fixed.batch);
  return Chart{"Throughput over GPUs", fmt::format("samples/s at global batch {}", fixed.batch),
               draw(chart), false};
}

std::optional<Chart> batch_chart(const RunResult& run, const std::string& model) {
  const Comparison fixed = focus(run, model);
  const auto lines = throughput_by<std::int64_t>(
      run, [](const Case& work) { return work.batch; },
      [&](const Case& work) {
        const bool gpus_match = work.strategy == Strategy::single ? work.world_size() == 1
                                                                  : work.world_size() == fixed.gpus;
        return work.model.name == model && gpus_match && tag_text(work) == fixed.tags;
      });
  LineChart chart = line_chart(lines);
  if (chart.x.size() < 2) return std::nullopt;
  chart.x_title = "global batch";
  chart.label = fmt::format("Throughput of {} over batches on {} GPUs", model, fixed.gpus);
  return Chart{
      "Throughput over batch sizes",
      fmt::format("samples/s on {} GPU{}; single on one", fixed.gpus, fixed.gpus == 1 ? "" : "s"),
      draw(chart), false};
}

// The scenario's own axis: the first tag, as bucket_mb.
std::optional<Chart> tag_chart(const RunResult& run, const std::string& model) {
  const Comparison fixed = focus(run, model);
  std::string key;
  // Numbers in their order, words in the order of the plan.
  std::vector<std::string> order;
  for (const CaseResult& r : run.cases) {
    if (r.status != CaseStatus::done || r.work.tags.empty() || r.work.model.name != model) continue;
    if (key.empty()) key = r.work.tags.front().first;
    const std::string& value = r.work.tags.front().second;
    if (std::find(order.begin(), order.end(), value) == order.end()) order.push_back(value);
  }
  if (order.size() < 2) return std::nullopt;
  const auto lines = throughput_by<std::size_t>(
      run,
      [&](const Case& work) {
        return static_cast<std::size_t>(
            std::find(order.begin(), order.end(), work.tags.front().second) - order.begin());
      },
      [&](const Case& work) {
        return work.model.name == model && !work.tags.empty() && work.batch == fixed.batch &&
               work.world_size() == fixed.gpus;
      });
  LineChart chart = line_chart(lines);
  if (chart.x.size() < 2) return std::nullopt;
  for (std::string& x : chart.x) x = order[static_cast<std::size_t>(std::stoul(x))];
  chart.x_title = key;
  chart.label = fmt::format("Throughput of {} over {}", model, key);
  return Chart{fmt::format("Throughput over {}", key),
               fmt::format("samples/s on {} GPU{} at batch {}", fixed.gpus,
                           fixed.gpus == 1 ? "" : "s", fixed.batch),
               draw(chart), false};
}

std::vector<BarSeries> memory_series() {
  std::vector<BarSeries> series;
  for (int i = 0; i < simulator::kMemoryCategoryCount; ++i) {
    const std::string name =
        simulator::memory_category_name(static_cast<simulator::MemoryCategory>(i));
    series.push_back({category_title(name), "m-" + name});
  }
  return series;
}

BarRow memory_row(const CaseResult& result, const DeviceMemory& memory) {
  BarRow row;
  row.label = fmt::format("{} GPU {}", strategy_title(result.work.strategy), memory.device);
  std::uint64_t known = 0;
  for (int i = 0; i < simulator::kMemoryCategoryCount; ++i) {
    const auto found = memory.by_category.find(
        simulator::memory_category_name(static_cast<simulator::MemoryCategory>(i)));
    const std::uint64_t bytes = found == memory.by_category.end() ? 0 : found->second;
    known += bytes;
    row.values.push_back(static_cast<double>(bytes));
  }
  // Real allocators give a peak without categories: all of it is "other".
  if (known < memory.peak_bytes)
    row.values.back() += static_cast<double>(memory.peak_bytes - known);
  row.total = format_bytes(memory.peak_bytes);
  return row;
}

}  // namespace

std::vector<std::string> finished_models(const RunResult& run) {
  std::vector<std::string> models;
  for (const Comparison& c : comparisons(run)) {
    if (models.empty() || models.back() != c.model) models.push_back(c.model);
  }
  return models;
}

Chart step_chart(const RunResult& run, const std::string& model) {
  StackedBars chart;
  chart.series = {{"compute", "b-compute"},
                  {"exposed communication", "b-comm"},
                  {"exposed host copy", "b-copy"},
                  {"waiting for the host", "b-host"},
                  {"idle", "b-idle"}};
  chart.format = format_ms;
  const bool tagged = has_tags(run, model);
  int last_gpus = 0;
  const auto rows = step_rows(run, model);
  for (const CaseResult* r : rows) {
    const DeviceBreakdown b = mean_breakdown(*r);
    BarRow row;
    row.label = row_label(*r, tagged);
    row.values = {b.compute_ms, b.exposed_communication_ms, b.exposed_copy_ms, b.host_ms,
                  b.idle_ms};
    row.total = format_ms(r->metric("step_ms_p50"));
    row.gap_before = last_gpus != 0 && r->work.world_size() != last_gpus;
    last_gpus = r->work.world_size();
    chart.rows.push_back(std::move(row));
  }
  if (chart.rows.empty()) return {};
  const std::int64_t batch = rows.front()->work.batch;
  chart.label = fmt::format("Where one step of {} goes at batch {}", model, batch);
  return {"Where the step goes", fmt::format("mean over GPUs, global batch {}", batch),
          draw(chart)};
}

std::vector<Chart> throughput_charts(const RunResult& run, const std::string& model) {
  std::vector<Chart> charts;
  for (auto chart : {gpu_chart(run, model), batch_chart(run, model), tag_chart(run, model)}) {
    if (chart) charts.push_back(std::move(*chart));
  }
  return charts;
}

Chart memory_chart(const RunResult& run, const std::string& model) {
  const Comparison fixed = focus(run, model);
  StackedBars chart;
  chart.series = memory_series();
  chart.format = format_memory;
  chart.binary_axis = true;
  auto cases = present(fixed);
  if (cases.empty() && fixed.single != nullptr) cases.push_back(fixed.single);
  for (const CaseResult* r : cases) {
    for (std::size_t i = 0; i < std::min(kMaxMemoryRows, r->memory.size()); ++i) {
      chart.rows.push_back(memory_row(*r, r->memory[i]));
      chart.rows.back().gap_before = i == 0 && chart.rows.size() > 1;
    }
    chart.limit = std::max(chart.limit, static_cast<double>(r->work.device_memory_bytes));
  }
  if (chart.rows.empty()) return {};
  double most = 0;
  for (const CaseResult* r : cases) {
    for (const DeviceMemory& m : r->memory)
      most = std::max(most, static_cast<double>(m.peak_bytes));
  }
  // A limit far beyond the bars would only make them short.
  if (chart.limit > 4 * most) chart.limit = 0;
  chart.limit_title = "GPU memory";
  chart.label = fmt::format("Peak memory per GPU of {} by category", model);
  return {
      "Memory per GPU at the peak",
      fmt::format("{} GPU{}, global batch {}", fixed.gpus, fixed.gpus == 1 ? "" : "s", fixed.batch),
      draw(chart)};
}

}  // namespace bench::report
