// Where the step of each strategy goes: compute, exposed communication, host, idle.
#include "bench/core/units.hpp"
#include "report/charts/axis.hpp"
#include "report/charts/focus.hpp"
#include "report/charts/run_charts.hpp"
#include "report/charts/stacked_bars.hpp"
#include "simulator/operation_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace bench::report {
namespace {

struct BarPhase {
  simulator::Phase phase;
  const char* css_class;
};

// Mean over the GPUs of a case, in the order of the chart's series.
std::vector<double> mean_breakdown(const CaseResult& result) {
  std::vector<double> mean(5, 0.0);
  const auto n = static_cast<double>(result.breakdown.size());
  for (const DeviceBreakdown& b : result.breakdown) {
    const double parts[] = {b.compute_ms, b.exposed_communication_ms, b.exposed_copy_ms, b.host_ms,
                            b.idle_ms};
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += parts[i] / n;
  }
  return mean;
}

// Without a timeline (measured runs) the phases that CUDA events saw stand in for the split.
constexpr BarPhase kPhases[] = {
    {simulator::Phase::data, "b-copy"},           {simulator::Phase::scatter, "m-inputs"},
    {simulator::Phase::broadcast, "m-buffers"},   {simulator::Phase::forward, "t-forward"},
    {simulator::Phase::gather, "m-activations"},  {simulator::Phase::loss, "m-other"},
    {simulator::Phase::backward, "t-backward"},   {simulator::Phase::reduce, "b-comm"},
    {simulator::Phase::optimizer, "t-optimizer"}, {simulator::Phase::other, "b-host"}};

std::vector<double> phases_of(const CaseResult& result) {
  std::vector<double> values;
  for (const BarPhase& bar : kPhases) {
    const auto found = result.phase_ms.find(simulator::phase_name(bar.phase));
    values.push_back(found == result.phase_ms.end() ? 0 : found->second);
  }
  return values;
}

// Cases at the focus' batch by GPU count, strategy and tags; where tags vary, on its GPUs only.
std::vector<const CaseResult*> rows_of(const RunResult& run, const Focus& focus, bool tagged) {
  auto rows = chart_cases(run, focus.at.model);
  std::erase_if(rows, [&](const CaseResult* r) {
    if (r->breakdown.empty() && r->phase_ms.empty()) return true;
    if (tagged) return r->work.tags.empty() || r->work.world_size() != focus.at.gpus;
    return !focus.same_batch(r->work);
  });
  const auto key = [](const CaseResult* r) {
    return std::tuple(r->work.world_size(), r->work.strategy);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const CaseResult* a, const CaseResult* b) { return key(a) < key(b); });
  return rows;
}

std::string row_label(const CaseResult& result, bool tagged) {
  if (tagged) return tag_text(result.work);
  const int gpus = result.work.world_size();
  return fmt::format("{}, {} GPU{}", strategy_title(result.work.strategy), gpus,
                     gpus == 1 ? "" : "s");
}

std::vector<BarSeries> split_series() {
  return {{"compute", "b-compute"},
          {"exposed communication", "b-comm"},
          {"exposed host copy", "b-copy"},
          {"waiting for the host", "b-host"},
          {"idle", "b-idle"}};
}

std::vector<BarSeries> phase_series() {
  std::vector<BarSeries> series;
  for (const BarPhase& bar : kPhases) {
    series.push_back({simulator::phase_name(bar.phase), bar.css_class});
  }
  return series;
}

}  // namespace

Chart step_chart(const RunResult& run, const std::string& model) {
  const Focus focus = focus_of(run, model);
  const bool tagged = !focus.at.tags.empty();
  const auto cases = rows_of(run, focus, tagged);
  if (cases.empty()) return {};
  const bool split = std::all_of(cases.begin(), cases.end(),
                                 [](const CaseResult* r) { return !r->breakdown.empty(); });
  StackedBars chart;
  chart.series = split ? split_series() : phase_series();
  chart.format = axis_ms;
  int last_gpus = 0;
  for (const CaseResult* r : cases) {
    BarRow row;
    row.label = row_label(*r, tagged);
    row.values = split ? mean_breakdown(*r) : phases_of(*r);
    row.total = axis_ms(r->metric("step_ms_p50"));
    row.gap_before = last_gpus != 0 && r->work.world_size() != last_gpus;
    last_gpus = r->work.world_size();
    chart.rows.push_back(std::move(row));
  }
  const std::string fixed = tagged ? focus.gpus_text() : focus.batch_text();
  chart.label = fmt::format("Where one step of {} goes, {}", model, fixed);
  return {"Where the step goes", (split ? "mean over GPUs, " : "phases on rank 0, ") + fixed,
          draw(chart)};
}

}  // namespace bench::report
