// The largest batch that fits under each strategy, where the run searched for it.
#include "report/charts/focus.hpp"
#include "report/charts/run_charts.hpp"
#include "report/charts/stacked_bars.hpp"

#include <fmt/format.h>

namespace bench::report {

Chart batch_chart(const RunResult& run, const std::string& model) {
  StackedBars chart;
  chart.series = {{"largest global batch", "b-compute"}};
  chart.format = [](double batch) { return fmt::format("{:.0f}", batch); };
  chart.label = "Largest batch of " + model + " that fits under each strategy";
  for (const CaseResult* r : chart_cases(run, model)) {
    if (!is_search_result(*r)) continue;
    const int gpus = r->work.world_size();
    BarRow row;
    row.label =
        fmt::format("{}, {} GPU{}", strategy_title(r->work.strategy), gpus, gpus == 1 ? "" : "s");
    row.values = {static_cast<double>(r->work.batch)};
    row.total = std::to_string(r->work.batch);
    chart.rows.push_back(std::move(row));
  }
  if (chart.rows.empty()) return {};
  return {"Largest batch that fits", "samples of one optimizer step over all GPUs", draw(chart)};
}

}  // namespace bench::report
